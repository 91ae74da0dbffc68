// Where a package has a file of assembly, it may declare functions whose bodies are elsewhere.
