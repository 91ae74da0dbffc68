package advise

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Setting is a durability setting of a well-known program, in the program's own words.
type Setting struct {
	Text   string
	Loses  string          // at a power cut, by the program's documentation
	Source string          // of Loses
	Policy holdfast.Policy // writes and syncs as the program does under this setting
}

// background reports whether a Write under the setting returns without a sync.
func (s Setting) background() bool { return !s.Policy.Sync.Waits() }

// settings are keyed by program, the first part of a preset's name. The first setting of each is the program's
// default. docs/advise.md has the same table.
func settings() map[string][]Setting {
	return map[string][]Setting{
		"etcd": {
			{"the default", "nothing", "https://etcd.io/docs/v3.5/faq/", holdfast.Durable()},
			{"--unsafe-no-fsync", "what the kernel has not written", "https://etcd.io/docs/v3.5/op-guide/configuration/", holdfast.Unbuffered()},
		},
		"postgres": {
			{"synchronous_commit=on", "nothing", "https://www.postgresql.org/docs/current/runtime-config-wal.html", holdfast.Durable()},
			{"synchronous_commit=off", "the commits of the last 600ms (3 × wal_writer_delay)", "https://www.postgresql.org/docs/current/runtime-config-wal.html", holdfast.Periodic(200 * time.Millisecond)},
			{"fsync=off", "any commit; the database may be corrupt", "https://www.postgresql.org/docs/current/runtime-config-wal.html", holdfast.Unbuffered()},
		},
		"redis": {
			{"appendfsync everysec", "the last second", "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/", holdfast.Policy{Sync: holdfast.SyncEvery(time.Second)}},
			{"appendfsync always", "nothing", "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/", holdfast.EachDurable()},
			{"appendfsync no", "what the kernel has not written, usually the last 30s", "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/", holdfast.Unbuffered()},
		},
		"mongodb": {
			{"writeConcern j: true", "nothing", "https://www.mongodb.com/docs/manual/reference/write-concern/", holdfast.Durable()},
			{"writeConcern j: false", "the last 100ms (commitIntervalMs) and the write", "https://www.mongodb.com/docs/manual/tutorial/manage-journaling/", holdfast.Periodic(100 * time.Millisecond)},
		},
		"kafka": {
			{"the default, without a replica", "what the kernel has not written", "https://kafka.apache.org/documentation/#newlogflushpolicy", holdfast.Unbuffered()},
			{"flush.ms=1000", "the last second", "https://kafka.apache.org/documentation/#topicconfigs_flush.ms", holdfast.Policy{Sync: holdfast.SyncEvery(time.Second)}},
			{"flush.messages=1", "nothing", "https://kafka.apache.org/documentation/#topicconfigs_flush.messages", holdfast.EachDurable()},
		},
		"rabbitmq": {
			{"publisher confirms", "nothing that was confirmed", "https://www.rabbitmq.com/docs/confirms", holdfast.Durable()},
			{"no confirms", "the messages of the last few hundred milliseconds", "https://www.rabbitmq.com/docs/confirms", holdfast.Periodic(200 * time.Millisecond)},
		},
		"nats": {
			{"sync_interval: 2m", "the last two minutes", "https://docs.nats.io/nats-concepts/jetstream", holdfast.Policy{Sync: holdfast.SyncEvery(2 * time.Minute)}},
			{"sync_interval: always", "nothing", "https://docs.nats.io/reference/config/jetstream/sync_interval", holdfast.EachDurable()},
		},
		"sqlite": {
			{"synchronous=FULL, WAL", "nothing", "https://www.sqlite.org/pragma.html#pragma_synchronous", holdfast.EachDurable()},
			{"synchronous=NORMAL, WAL", "commits since the last checkpoint", "https://www.sqlite.org/pragma.html#pragma_synchronous", holdfast.Policy{Sync: holdfast.Sync{Mode: holdfast.SyncPeriodic, Bytes: 4 * holdfast.MiB}}},
			{"synchronous=OFF", "any commit; the database may be corrupt", "https://www.sqlite.org/pragma.html#pragma_synchronous", holdfast.Unbuffered()},
		},
	}
}

// Settings returns the settings of the preset's program, its default first.
func (p Preset) Settings() []Setting { return settings()[p.program()] }

// program returns the preset's name without its setting's part: redis-always is redis.
func (p Preset) program() string {
	name, _, _ := strings.Cut(p.Name, "-")
	return name
}
