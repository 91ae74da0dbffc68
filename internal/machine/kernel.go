package machine

func (h host) kernel() []Fact {
	return []Fact{h.fact("kernel", "/proc/sys/kernel/osrelease")}
}

// dirtySettings tells when the kernel itself writes back what is not synced.
func (h host) dirtySettings() []Fact {
	var facts []Fact
	for _, name := range []string{
		"dirty_background_bytes", "dirty_background_ratio", "dirty_bytes",
		"dirty_ratio", "dirty_expire_centisecs", "dirty_writeback_centisecs",
	} {
		facts = append(facts, h.fact("vm."+name, "/proc/sys/vm/"+name))
	}
	return facts
}
