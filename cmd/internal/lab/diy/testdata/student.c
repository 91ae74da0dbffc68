/* A right solution, as a student may write it. The test makes wrong ones of it. */
#include "diy_buffering.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct diy_file {
	int fd, writing, eof, error;
	size_t start, end;
	unsigned char buffer[DIY_BUFFER];
};

DIY_FILE *diy_fopen(const char *path, const char *mode)
{
	DIY_FILE *f = calloc(1, sizeof *f);
	if (f == NULL)
		return NULL;
	f->writing = *mode != 'r';
	f->fd = open(path, f->writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
	if (f->fd < 0) {
		free(f);
		return NULL;
	}
	return f;
}

size_t diy_fread(void *p, size_t size, size_t nmemb, DIY_FILE *f)
{
	size_t total = size * nmemb, done = 0;
	while (done < total) {
		if (f->start == f->end) {
			ssize_t got = read(f->fd, f->buffer, DIY_BUFFER);
			if (got < 0 && errno == EINTR)
				continue;
			if (got < 0)
				f->error = 1;
			if (got == 0)
				f->eof = 1;
			if (got <= 0)
				break;
			f->start = 0;
			f->end = (size_t)got;
		}
		size_t n = f->end - f->start;
		if (n > total - done)
			n = total - done;
		memcpy((unsigned char *)p + done, f->buffer + f->start, n);
		f->start += n;
		done += n;
	}
	return size == 0 ? 0 : done / size;
}

int diy_fflush(DIY_FILE *f)
{
	while (f->start < f->end) {
		ssize_t took = write(f->fd, f->buffer + f->start, f->end - f->start);
		if (took < 0 && errno == EINTR)
			continue;
		if (took < 0) {
			f->error = 1;
			return -1;
		}
		f->start += (size_t)took;
	}
	f->start = f->end = 0;
	return 0;
}

size_t diy_fwrite(const void *p, size_t size, size_t nmemb, DIY_FILE *f)
{
	size_t total = size * nmemb, done = 0;
	while (done < total) {
		if (f->end == DIY_BUFFER && diy_fflush(f) != 0)
			break;
		size_t n = DIY_BUFFER - f->end;
		if (n > total - done)
			n = total - done;
		memcpy(f->buffer + f->end, (const unsigned char *)p + done, n);
		f->end += n;
		done += n;
	}
	return size == 0 ? 0 : done / size;
}

int diy_fclose(DIY_FILE *f)
{
	int result = f->writing ? diy_fflush(f) : 0;
	if (close(f->fd) != 0)
		result = -1;
	free(f);
	return result;
}

int diy_feof(const DIY_FILE *f)
{
	return f->eof;
}

int diy_ferror(const DIY_FILE *f)
{
	return f->error;
}
