/* Go asks bcryptprimitives.dll for random bytes. wine 8 has no such file: this is one. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T size)
{
	return RtlGenRandom(to, (ULONG)size);
}
