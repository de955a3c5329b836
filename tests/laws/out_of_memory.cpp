/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Memory of the host that runs out. And what allocates: it counts the bytes, too.
 *
 *  What the runtimes of OpenMP and of FFTW allocate for themselves does not fail here: they end the
 *  program themselves then, and nobody can do anything about it.
 */
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <link.h>
#include <malloc.h>

#include "counted_allocations.h"
#include "failing_allocations.h"

extern "C"
{
    void* __libc_malloc(size_t size);
    void* __libc_calloc(size_t count, size_t size);
    void* __libc_realloc(void* old, size_t size);
    void* __libc_memalign(size_t alignment, size_t size);
    void __libc_free(void* memory);
}

namespace
{

//! Code of the libraries whose allocations are spared.
struct Spared
{
    std::array<std::pair<uintptr_t, uintptr_t>, 16> ranges;
    size_t count = 0;
} g_spared;

//! Whether an allocation on behalf of that code is to fail.
bool fails(void* caller)
{
    if (!farfield::test::isArmed())
    {
        return false;
    }
    const auto address = reinterpret_cast<uintptr_t>(caller);
    for (size_t i = 0; i < g_spared.count; i++)
    {
        if (address >= g_spared.ranges[i].first && address < g_spared.ranges[i].second)
        {
            return false;
        }
    }
    return farfield::test::isTurnToFail();
}

//! Notes where the libraries are whose allocations are spared.
void findSpared()
{
    dl_iterate_phdr(
            [](dl_phdr_info* info, size_t, void*)
            {
                const bool isSpared = std::strstr(info->dlpi_name, "libgomp") != nullptr
                                      || std::strstr(info->dlpi_name, "libomp") != nullptr
                                      || std::strstr(info->dlpi_name, "libfftw3") != nullptr;
                for (int i = 0; isSpared && i < info->dlpi_phnum; i++)
                {
                    const auto& segment = info->dlpi_phdr[i];
                    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0
                        && g_spared.count < g_spared.ranges.size())
                    {
                        const uintptr_t begin             = info->dlpi_addr + segment.p_vaddr;
                        g_spared.ranges[g_spared.count++] = { begin, begin + segment.p_memsz };
                    }
                }
                return 0;
            },
            nullptr);
}

//! Found before any test runs.
const bool g_areFound = (findSpared(), true);

//! Counts memory that is given.
void* counted(void* memory)
{
    farfield::test::countBytes(static_cast<long long>(malloc_usable_size(memory)));
    return memory;
}

//! Counts memory that is given back.
void uncount(void* memory)
{
    farfield::test::countBytes(-static_cast<long long>(malloc_usable_size(memory)));
}

} // namespace

extern "C"
{
    void* malloc(size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_malloc(size));
    }
    void* calloc(size_t count, size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_calloc(count, size));
    }
    void* realloc(void* old, size_t size)
    {
        if (fails(__builtin_return_address(0)))
        {
            return nullptr;
        }
        uncount(old);
        void* memory = __libc_realloc(old, size);
        counted(memory != nullptr || size == 0 ? memory : old);
        return memory;
    }
    void* aligned_alloc(size_t alignment, size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr
                                                  : counted(__libc_memalign(alignment, size));
    }
    void* memalign(size_t alignment, size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr
                                                  : counted(__libc_memalign(alignment, size));
    }
    int posix_memalign(void** result, size_t alignment, size_t size)
    {
        if (fails(__builtin_return_address(0)))
        {
            return ENOMEM;
        }
        *result = counted(__libc_memalign(alignment, size));
        return *result != nullptr ? 0 : ENOMEM;
    }
    void free(void* memory)
    {
        uncount(memory);
        __libc_free(memory);
    }
}

namespace farfield
{
namespace test
{
namespace
{

struct FloatFft : MemoryKind<float, M2lEngine::Fft, Device::Cpu>
{
};
struct DoubleHierarchy : MemoryKind<double, M2lEngine::Hierarchy, Device::Cpu>
{
};
using OnHost = ::testing::Types<FloatFft, DoubleHierarchy>;
INSTANTIATE_TYPED_TEST_SUITE_P(Host, OutOfMemory, OnHost);

} // namespace
} // namespace test
} // namespace farfield
