package main

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

// TestForwarder follows the table as a loader does, from the function's name to the text of the target.
func TestForwarder(t *testing.T) {
	f, err := pe.NewFile(bytes.NewReader(forwarder("a.dll", "Asked", "other.Called")))
	if err != nil {
		t.Fatal(err)
	}
	if f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || f.Characteristics&pe.IMAGE_FILE_DLL == 0 {
		t.Errorf("the file is %+v", f.FileHeader)
	}
	table := f.OptionalHeader.(*pe.OptionalHeader64).DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT]
	section := f.Sections[0]
	at := func(address uint32) io.Reader {
		if address < table.VirtualAddress || address >= table.VirtualAddress+table.Size {
			t.Fatalf("%#x is not in the table at %#x", address, table)
		}
		data, err := section.Data()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(data[address-section.VirtualAddress:])
	}
	number := func(address uint32) (n uint32) {
		if err := binary.Read(at(address), binary.LittleEndian, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	check := func(what string, address uint32, want string) {
		t.Helper()
		all, err := io.ReadAll(at(address))
		if got, _, _ := strings.Cut(string(all), "\x00"); err != nil || got != want {
			t.Errorf("the %s is %q, %v, want %q", what, got, err, want)
		}
	}
	// The words of IMAGE_EXPORT_DIRECTORY, by their offsets.
	check("library", number(table.VirtualAddress+12), "a.dll")
	check("name", number(number(table.VirtualAddress+32)), "Asked")
	check("target", number(number(table.VirtualAddress+28)), "other.Called")
	if counts := [2]uint32{number(table.VirtualAddress + 20), number(table.VirtualAddress + 24)}; counts != [2]uint32{1, 1} {
		t.Errorf("it counts %d functions and names", counts)
	}
}
