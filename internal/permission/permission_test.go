package permission

import (
	"encoding/binary"
	"testing"
)

func TestAnotherGroupGetsWhatBothClassesHad(t *testing.T) {
	check := func(perm, want uint32) {
		t.Helper()
		if got := WithoutGroup(perm); got != want {
			t.Errorf("withoutGroup(%#o) = %#o, want %#o", perm, got, want)
		}
	}
	check(0o640, 0o600)
	check(0o644, 0o644)
	check(0o4657, 0o4655)
}

func TestWithoutItsListAFileIsForThoseWhomItLetIn(t *testing.T) {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	entry := func(kind, perm uint16) {
		list = binary.LittleEndian.AppendUint16(list, kind)
		list = binary.LittleEndian.AppendUint16(list, perm)
		list = append(list, 0xff, 0xff, 0xff, 0xff)
	}
	entry(0x01, 6) // the owner
	entry(listUser, 6)
	entry(listGroup, 4)
	entry(listMask, 6)
	entry(listOther, 5)
	if got := WithoutList(0o665, list); got != 0o644 {
		t.Errorf("%#o, want 0644: what the user, the group and others may", got)
	}
	if got := WithoutList(0o665, nil); got != 0o665 {
		t.Errorf("without a list: %#o", got)
	}
	if got := OtherOf(list); got != 5 {
		t.Errorf("others: %o", got)
	}
	ListWithoutGroup(list)
	if got := OtherOf(list); got != 4 {
		t.Errorf("others of a file of another group: %o, want no more than the group had", got)
	}
}
