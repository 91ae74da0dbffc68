package sys

// NoFollow is a flag of a Disk's OpenFile: a path that ends in a symbolic link to a file is ELOOP. A link
// or junction to a directory is refused as a directory is, unless it is opened for reading: ELOOP. Package
// os ignores the flag. Windows has none; the number is Linux's.
const NoFollow = 0x20000
