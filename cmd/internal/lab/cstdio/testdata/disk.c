#define _POSIX_C_SOURCE 200809L

#include "disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

ssize_t disturb(unsigned *seed, size_t n)
{
	if (*seed == 0)
		return (ssize_t)n;
	*seed = *seed * 1103515245u + 12345u;
	unsigned r = *seed >> 16;
	if (*seed == 0)
		*seed = 1;
	if (r % 3 == 0) {
		errno = EINTR;
		return -1;
	}
	return r % 3 == 1 && n > 1 ? (ssize_t)(1 + (r / 3) % (n - 1)) : (ssize_t)n;
}

static int hits(const struct disk *d, int at, int call)
{
	return at > 0 && call >= at && call < at + d->fail_times;
}

static ssize_t lied(const struct disk *d)
{
	return d->lie == -2 ? 0 : d->lie;
}

static ssize_t disk_read(void *file, void *p, size_t n)
{
	struct disk *d = file;
	if (hits(d, d->fail_read_at, ++d->reads)) {
		errno = d->fail;
		return -1;
	}
	if (d->lie != 0)
		return lied(d);
	if (n > d->len - d->at)
		n = d->len - d->at;
	ssize_t take = disturb(&d->seed, n);
	if (take > 0) {
		memcpy(p, d->bytes + d->at, (size_t)take);
		d->at += (size_t)take;
	}
	return take;
}

static void grow(struct disk *d, size_t n)
{
	if (n <= d->holds)
		return;
	d->holds = 2 * n;
	d->bytes = realloc(d->bytes, d->holds);
	if (d->bytes == NULL)
		abort();
}

static ssize_t disk_write(void *file, const void *p, size_t n)
{
	struct disk *d = file;
	if (hits(d, d->fail_write_at, ++d->writes)) {
		errno = d->fail;
		return -1;
	}
	if (d->lie != 0)
		return lied(d);
	ssize_t take = disturb(&d->seed, n);
	if (take < 0)
		return take;
	if (d->room > 0 && (size_t)take > d->room - d->len)
		take = (ssize_t)(d->room - d->len);
	if (take == 0) {
		errno = ENOSPC;
		return -1;
	}
	grow(d, d->len + (size_t)take);
	memcpy(d->bytes + d->len, p, (size_t)take);
	d->len += (size_t)take;
	return take;
}

static int disk_close(void *file)
{
	struct disk *d = file;
	d->closes++;
	if (d->fail_close == 0)
		return 0;
	errno = d->fail_close;
	return -1;
}

struct df_io disk_io(struct disk *d)
{
	return (struct df_io){d, disk_read, disk_write, disk_close};
}

void disk_free(struct disk *d)
{
	free(d->bytes);
	*d = (struct disk){0};
}
