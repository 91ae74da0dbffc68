package study

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/machine"
	"github.com/holdfast-go/holdfast/internal/result"
)

// onKind says on which file system the evidence was found.
func onKind(e Evidence, kind string) Evidence {
	e.run.Header.Machine = []machine.Fact{{Name: "file system", Value: kind}}
	return e
}

func TestCopyClaimsFollowTheEvidence(t *testing.T) {
	arms := []string{copyArm(1), copyArm(512), copyArm(4096), copyArm(oddBuffer), copyArm(16384), copyArm(65536)}
	// plant gives each buffer a time and a user time of a copy of 8 MB.
	plant := func(times, user map[string]float64) Evidence {
		return planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records, m.Size = 8e6, 8e6
			m.Write = wiggle(times[arm], round)
			m.User, m.System = time.Duration(user[arm]), time.Second
			m.Elapsed = m.Write
		}, arms...)
	}
	check := func(claim string, e Evidence, want Verdict) {
		t.Helper()
		if f := claimOf(t, copyClaims(), claim).Find(e); f.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", claim, f.Verdict, f.Measured, want)
		}
	}
	falling := plant(map[string]float64{copyArm(1): 1e9, copyArm(512): 9e7, copyArm(4096): 3e7, copyArm(oddBuffer): 2.5e7, copyArm(16384): 2e7, copyArm(65536): 1e7}, nil)
	peak := plant(map[string]float64{copyArm(1): 1e9, copyArm(512): 9e7, copyArm(4096): 1e7, copyArm(oddBuffer): 2e7, copyArm(16384): 2e7, copyArm(65536): 2e7}, nil)
	check("copy-larger", falling, Holds)
	check("copy-larger", peak, NotHere)
	check("copy-ext4-4096", onKind(falling, "ext4"), NotHere)
	check("copy-ext4-4096", onKind(peak, "ext4"), Holds)
	check("copy-ext4-4096", onKind(peak, "xfs"), NotChecked)
	check("copy-btrfs-16284", onKind(falling, "btrfs"), NotHere)
	check("copy-btrfs-16284", onKind(peak, "btrfs"), Holds)
	check("copy-btrfs-16284", onKind(peak, "ext4"), NotChecked)
	check("copy-jfs-small", onKind(peak, "ext4"), NotChecked)

	user := func(odd, even, large, single float64) Evidence {
		return plant(nil, map[string]float64{copyArm(oddBuffer): odd, copyArm(16384): even, copyArm(65536): large, copyArm(1): single})
	}
	check("copy-user-16284", user(2e5, 3e5, 0, 0), NeverSo)
	check("copy-user-16284", user(2e5, 3e6, 0, 0), Holds)
	check("copy-user-16284", user(3e6, 3e6, 0, 0), NotHere)
	check("copy-user-negligible", user(0, 0, 2e7, 0), Holds)
	check("copy-user-negligible", user(0, 0, 5e8, 0), NotHere)
	check("copy-system", user(0, 0, 0, 2e8), Holds)
	check("copy-system", user(0, 0, 0, 3e9), NotHere)
}

func TestClaimOfAnotherFileSystemNamesTheCommand(t *testing.T) {
	for _, j := range copyClaims().Claiming([]string{"copy-btrfs-16284"}).Judge(onKind(planted(10, func(_ string, round int, m *result.Measurement) {
		m.Write = wiggle(1e6, round)
	}, copyArm(oddBuffer), copyArm(4096)), "ext4").run) {
		if j.Command != "holdfast audit --claim copy-btrfs-16284 --dir A_FOLDER_ON_BTRFS" || !strings.Contains(j.Why, "ext4") {
			t.Errorf("%+v", j)
		}
	}
}

func TestCopyClaimsOfSyncedWrites(t *testing.T) {
	arms := []string{syncArm(1), syncArm(2), syncArm(4096)}
	plant := func(one, two, page float64) Evidence {
		return planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records, m.Size = 100, 100
			ns := map[string]float64{syncArm(1): one, syncArm(2): two, syncArm(4096): page}[arm]
			m.Write = wiggle(ns*100, round)
			if arm == syncArm(4096) {
				m.Size = 4096 * 100
			}
		}, arms...)
	}
	check := func(claim string, e Evidence, want Verdict) {
		t.Helper()
		if f := claimOf(t, copyClaims(), claim).Find(e); f.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", claim, f.Verdict, f.Measured, want)
		}
	}
	same := plant(1.5e6, 1.5e6, 1.6e6) // the original's disk: 1573 s for a mebibyte
	check("copy-osync-larger", same, Holds)
	check("copy-osync-larger", plant(1e3, 1e3, 4e6), NotHere)
	check("copy-osync-byte", same, Holds)
	check("copy-osync-byte", plant(1e5, 1e5, 1e5), NotHere)
	check("copy-osync-two", same, NeverSo)
	check("copy-osync-two", plant(1.5e6, 1.5e6/19, 1.6e6), Holds)
}

func TestCopyArmsRun(t *testing.T) {
	const size = 1 << 20
	m := runOnce(t, copyTask(size, oddBuffer), size)
	// Each buffer is read once and written once, and the end is read.
	if calls := int64(size)/oddBuffer + 1; m.IO != nil && (m.IO.Writes < calls || m.IO.Reads < calls+1 || m.IO.Writes > calls+10) {
		t.Errorf("%d reads and %d writes of a copy that takes %d each", m.IO.Reads, m.IO.Writes, calls)
	}
	runStudy(t, copyClaims(), Choice{Preset: Quick(), Rounds: 1, Seed: 1, Only: []string{syncArm(2)}})
}
