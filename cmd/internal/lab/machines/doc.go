// Package machines has only tests: the workloads of the catalogue run on machines that fail, because memory, room or time runs
// out. Another process keeps their acknowledgements, and compares them with the files afterwards.
package machines
