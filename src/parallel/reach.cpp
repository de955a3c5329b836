/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "parallel/reach.h"

#include <cmath>

#include "base/threads.h"

namespace farfield
{

std::array<Reach::Range, 2> Reach::halves(double drift)
{
    std::array<Range, 2> ofHalf;
    for (int half = 0; half < 2; half++)
    {
        // a position is below the end of its half
        ofHalf[half] = { static_cast<int>(std::floor(0.5 * half - 1 - drift)),
                         static_cast<int>(std::ceil(0.5 * (half + 1) + drift)) - 1 };
    }
    return ofHalf;
}

Reach::Reach(const Grid& grid, double drift, int threads) :
    grid_(grid), threads_(threads), parts_(partsFor(drift)), ofHalf_(halves(drift))
{
    const auto cells = static_cast<int>(grid.count());
    for (int k = 0; k < 3; k++)
    {
        next_[k].resize(cells);
        previous_[k].resize(cells);
#pragma omp parallel for schedule(static) num_threads(threads_)
        for (int cell = 0; cell < cells; cell++)
        {
            Int3 c = grid.cell(cell);
            c[k]++;
            const int next     = grid.indexOfImage(c);
            next_[k][cell]     = next;
            previous_[k][next] = cell; // a permutation: nobody else writes there
        }
    }
}

int Reach::place(const double* u) const
{
    Int3 c;
    int part = 0;
    for (int k = 0; k < 3; k++)
    {
        const double cell = std::floor(u[k]);
        c[k]              = static_cast<int>(cell);
        part += u[k] - cell >= 0.5 ? 1 << k : 0;
    }
    return parts_ * grid_.indexOfImage(c) + part % parts_;
}

Reach::Box Reach::boxOf(int part) const
{
    Box box;
    for (int k = 0; k < 3; k++)
    {
        box[k] = ofHalf_[part >> k & 1];
    }
    return box;
}

void Reach::spread(std::vector<char>* marked, const Box& box) const
{
    const size_t cells = marked->size();
    std::vector<char> from(cells);
    for (int k = 0; k < 3; k++)
    {
        from = *marked;
        marked->assign(cells, 0);
        for (size_t cell = 0; cell < cells; cell++)
        {
            if (!from[cell])
            {
                continue;
            }
            auto at = static_cast<int>(cell);
            for (int t = 0; t > box[k].low; t--)
            {
                at = previous_[k][at];
            }
            for (int t = box[k].low; t <= box[k].high; t++)
            {
                (*marked)[at] = 1;
                at            = next_[k][at];
            }
        }
    }
}

std::vector<char> Reach::reached(const std::vector<char>& places) const
{
    const size_t cells = grid_.count();
    std::vector<std::vector<char>> ofPart(parts_);
    forTasks(parts_,
             threads_,
             [&](int part)
             {
                 ofPart[part].resize(cells);
                 for (size_t cell = 0; cell < cells; cell++)
                 {
                     ofPart[part][cell] = places[parts_ * cell + part];
                 }
                 spread(&ofPart[part], boxOf(part));
             });
    std::vector<char> all(cells, 0);
    for (const auto& some : ofPart)
    {
        for (size_t cell = 0; cell < cells; cell++)
        {
            all[cell] = all[cell] || some[cell];
        }
    }
    return all;
}

std::vector<char> Reach::placesThatReach(const std::vector<char>& marked) const
{
    std::vector<char> places(parts_ * marked.size());
    forTasks(parts_,
             threads_,
             [&](int part)
             {
                 Box back = boxOf(part);
                 for (Range& range : back)
                 {
                     range = { -range.high, -range.low };
                 }
                 std::vector<char> some = marked;
                 spread(&some, back);
                 for (size_t cell = 0; cell < some.size(); cell++)
                 {
                     places[parts_ * cell + part] = some[cell];
                 }
             });
    return places;
}

std::vector<char> Reach::near(const std::vector<char>& marked, int ws) const
{
    std::vector<char> all = marked;
    const Range both      = { -ws, ws };
    spread(&all, { both, both, both });
    return all;
}

} // namespace farfield
