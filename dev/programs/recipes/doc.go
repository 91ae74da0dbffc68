// Package recipes has the programs of docs/recipes.md: a file for each recipe, which the page shows from its first declaration on,
// and whose comment it begins with. A test holds that the page equals the files, and runs each of them.
//
// Start with recipes_test.go.
package recipes
