package main

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
)

// The layout of the DLL, in bytes: the headers, and a section that has nothing but the export table.
const (
	signatureAt = 0x40   // the end of a DOS header
	headers     = 0x200  // also the unit of sizes in the file
	page        = 0x1000 // also where the section is in memory
)

// forwarder returns a DLL for amd64 of one function, which is another DLL's ("dll.function"). It has no
// code: the loader puts the other function in its place.
func forwarder(dll, function, target string) []byte {
	exports := exportTable(dll, function, target)
	stored := (len(exports) + headers - 1) / headers * headers
	optional := pe.OptionalHeader64{
		Magic:                       0x20b, // PE32+
		SizeOfInitializedData:       uint32(stored),
		ImageBase:                   0x180000000,
		SectionAlignment:            page,
		FileAlignment:               headers,
		MajorOperatingSystemVersion: 6,
		MajorSubsystemVersion:       6,
		SizeOfImage:                 2 * page,
		SizeOfHeaders:               headers,
		Subsystem:                   pe.IMAGE_SUBSYSTEM_WINDOWS_CUI,
		NumberOfRvaAndSizes:         16,
	}
	optional.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT] = pe.DataDirectory{VirtualAddress: page, Size: uint32(len(exports))}
	section := pe.SectionHeader32{
		Name:             [8]uint8{'.', 'e', 'd', 'a', 't', 'a'},
		VirtualSize:      uint32(len(exports)),
		VirtualAddress:   page,
		SizeOfRawData:    uint32(stored),
		PointerToRawData: headers,
		Characteristics:  pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ,
	}
	dos := make([]byte, signatureAt)
	copy(dos, "MZ")
	binary.LittleEndian.PutUint32(dos[0x3c:], signatureAt)
	image := packed(dos, []byte("PE\x00\x00"), pe.FileHeader{
		Machine:              pe.IMAGE_FILE_MACHINE_AMD64,
		NumberOfSections:     1,
		SizeOfOptionalHeader: uint16(binary.Size(optional)),
		Characteristics:      pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE | pe.IMAGE_FILE_DLL,
	}, optional, section)
	whole := make([]byte, headers+stored)
	copy(whole, image)
	copy(whole[headers:], exports)
	return whole
}

// An exportDirectory is the IMAGE_EXPORT_DIRECTORY of Windows. Addresses are relative to the image.
type exportDirectory struct {
	_                           [12]byte // flags, time, version
	Name, Base                  uint32
	Functions, Names            uint32 // how many
	FunctionsAt, NamesAt, Numbs uint32 // Numbs: the numbers of the names' functions
}

// exportTable returns the section's contents. An address of a function that is inside the table is
// the address of a text that names the function to take.
func exportTable(dll, function, target string) []byte {
	const (
		functions = page + 40 // the directory's own size
		names     = functions + 4
		numbers   = names + 4
		texts     = numbers + 2
	)
	functionAt := uint32(texts + len(dll) + 1)
	targetAt := functionAt + uint32(len(function)+1)
	return packed(exportDirectory{
		Name: texts, Base: 1,
		Functions: 1, Names: 1,
		FunctionsAt: functions, NamesAt: names, Numbs: numbers,
	}, targetAt, functionAt, uint16(0), []byte(dll+"\x00"+function+"\x00"+target+"\x00"))
}

func packed(parts ...any) []byte {
	var b bytes.Buffer
	for _, part := range parts {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // a part whose size is not fixed
		}
	}
	return b.Bytes()
}
