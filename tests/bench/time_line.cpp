/*
 * farfield: a fast multipole method for molecular dynamics.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Writes what runs on a GPU, and when, in any program and inside of CUDA graphs.
 *
 *      CUDA_INJECTION64_PATH=build/lib/libfarfield_time_line.so TIME_LINE=run.csv gmx mdrun ...
 *      python3 -m tests.bench.time_line run.csv
 *
 *  CUDA loads the library that the first variable names. A line for each kernel, copy and clearing:
 *  begin and end, ns; GPU; stream; blocks, threads of a block, registers of a thread, shared memory of a
 *  block in bytes and of the multiprocessor in KiB; name.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include <cupti.h>

namespace
{

std::FILE* g_file = nullptr;

void line(uint64_t begin,
          uint64_t end,
          uint32_t device,
          uint32_t stream,
          int blocks,
          int threads,
          int registers,
          int shared,
          int sharedOfAll,
          const char* name)
{
    std::fprintf(g_file,
                 "%llu,%llu,%u,%u,%d,%d,%d,%d,%d,%s\n",
                 static_cast<unsigned long long>(begin),
                 static_cast<unsigned long long>(end),
                 device,
                 stream,
                 blocks,
                 threads,
                 registers,
                 shared,
                 sharedOfAll,
                 name);
}

void write(const CUpti_Activity* record)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
    {
        const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        line(k.start,
             k.end,
             k.deviceId,
             k.streamId,
             k.gridX * k.gridY * k.gridZ,
             k.blockX * k.blockY * k.blockZ,
             k.registersPerThread,
             k.staticSharedMemory + k.dynamicSharedMemory,
             static_cast<int>(k.sharedMemoryExecuted / 1024),
             k.name != nullptr ? k.name : "?");
    }
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
    {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        line(copy.start, copy.end, copy.deviceId, copy.streamId, 0, 0, 0, 0, 0, "memcpy");
    }
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
    {
        const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        line(set.start, set.end, set.deviceId, set.streamId, 0, 0, 0, 0, 0, "memset");
    }
}

void CUPTIAPI requestBuffer(uint8_t** buffer, size_t* size, size_t* records)
{
    constexpr size_t c_alignment = 64;
    *size                        = size_t(8) << 20;
    *buffer                      = static_cast<uint8_t*>(std::aligned_alloc(c_alignment, *size));
    *records                     = 0;
}

void CUPTIAPI completeBuffer(CUcontext /*context*/,
                             uint32_t /*stream*/,
                             uint8_t* buffer,
                             size_t /*size*/,
                             size_t valid)
{
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    {
        write(record);
    }
    std::free(buffer);
}

void finish()
{
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    std::fclose(g_file);
}

} // namespace

//! What CUDA calls when it has loaded the library.
extern "C" __attribute__((visibility("default"))) int InitializeInjection()
{
    const char* path = std::getenv("TIME_LINE");
    g_file           = std::fopen(path != nullptr ? path : "time_line.csv", "w");
    bool ready       = g_file != nullptr
                 && cuptiActivityRegisterCallbacks(requestBuffer, completeBuffer) == CUPTI_SUCCESS;
    for (CUpti_ActivityKind kind : { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     CUPTI_ACTIVITY_KIND_MEMCPY,
                                     CUPTI_ACTIVITY_KIND_MEMSET })
    {
        ready = ready && cuptiActivityEnable(kind) == CUPTI_SUCCESS;
    }
    if (!ready)
    {
        std::fprintf(stderr, "farfield_time_line: no time line is written\n");
        return 0;
    }
    std::atexit(finish);
    return 1;
}
