// Package deploy has what runs holdfast on many machines: see README.md. It has no code.
package deploy
