// SPDX-License-Identifier: 0BSD
// minimal.cc - what a provider in C++17 needs at the boundary.  It stands before minimal.c, whose
// rules it leaves as they are, counts the calls of each operation, and logs them in the end.
//
//   - What `open` makes is an object: its destructor is `close`, also when `open` fails half way.
//   - No exception crosses the boundary, for that would end the host's process: every operation
//     runs inside of guarded().
//   - Each does first what can throw, then what cannot: an exception leaves the store as it was.
//
// Put your own store where minimal.c is: its operations in the place of forward().
#include <durakit/provider.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>

// minimal.c, which the Makefile compiles with this name for its entry.
extern "C" dk_entry_fn minimal_provider;

namespace {

const dk_provider &inner = *minimal_provider(DK_ABI_MINOR);

// ---- no exception crosses the boundary ----------------------------------------------------------

// The line that goes with a refusal, made without memory.  [ERR-2]
dk_status fail(const dk_host *host, dk_call *call, dk_status status, const char *operation,
               const char *why) noexcept {
  char line[200];
  std::size_t n = 0;
  for (const char *part : {operation, ": ", why})
    for (; *part && n < sizeof line; part++)
      line[n++] = *part;
  return host->fail(call, status, {line, n});
}

// [ABI-7]
template <class Body>
dk_status guarded(const dk_host *host, dk_call *call, const char *operation, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(host, call, DK_NO_MEMORY, operation, "out of memory");
  } catch (const std::exception &e) {
    return fail(host, call, DK_INTERNAL, operation, e.what());
  } catch (...) {
    return fail(host, call, DK_INTERNAL, operation, "an exception that was not expected");
  }
}

// ---- what a handle owns -------------------------------------------------------------------------

struct closer {
  void operator()(void *self) const noexcept { inner.close(self); }
};

// One call at a time, as the descriptor says: there is no lock in this file.
struct store {
  const dk_host *host; // the pointer, never a copy of the table
  std::unique_ptr<void, closer> self;
  std::map<std::string_view, std::uint64_t> calls;

  store(const dk_host *of, void *opened) noexcept : host(of), self(opened) {}
  store(const store &) = delete;
  store &operator=(const store &) = delete;
  ~store() { // then that of `self` closes the inner store
    try {
      std::string line = "minimal-cc: closed after";
      for (const auto &[operation, n] : calls)
        line.append(" ").append(operation).append("=").append(std::to_string(n));
      host->log(host, 0, {line.data(), line.size()});
    } catch (...) {
      // without memory there is no line; the store is closed all the same
    }
  }
};

// ---- the table ----------------------------------------------------------------------------------

// To count may throw: it comes before the operation, which then is done or not done as it says.
template <class... Arguments>
dk_status forward(void *self, dk_call *call, const char *name,
                  dk_status (*operation)(void *, dk_call *, Arguments...),
                  Arguments... arguments) noexcept {
  store &s = *static_cast<store *>(self);
  return guarded(s.host, call, name, [&] {
    s.calls[name]++;
    return operation(s.self.get(), call, arguments...);
  });
}

// What the inner one does not offer, this one does not either.
#define FORWARD(operation)                                                                         \
  if (inner.ops->operation)                                                                        \
    made.operation = [](void *self, dk_call *call, auto... arguments) {                            \
      return forward(self, call, #operation, inner.ops->operation, arguments...);                  \
    }

dk_ops make_ops() {
  dk_ops made = {};
  made.struct_size = sizeof made;
  FORWARD(enqueue_for_orchestrator);
  FORWARD(fetch_orchestration_item);
  FORWARD(ack_orchestration_item);
  FORWARD(abandon_orchestration_item);
  FORWARD(renew_orchestration_item_lock);
  FORWARD(fetch_work_item);
  FORWARD(ack_work_item);
  FORWARD(abandon_work_item);
  FORWARD(renew_work_item_lock);
  FORWARD(read_history);
  FORWARD(enqueue_for_worker);
  FORWARD(release_fetch);
  return made;
}
const dk_ops ops = make_ops();

// If there is no memory for the object, `opened` closes what was opened.
dk_status open_store(const dk_host *host, dk_call *call, const dk_open *open, void **ret_self) {
  void *self;
  const dk_status status = inner.open(host, call, open, &self);
  if (status != DK_OK)
    return status;
  std::unique_ptr<void, closer> opened(self);
  return guarded(host, call, "open", [&] {
    *ret_self = new store(host, opened.get());
    opened.release(); // it is the object's now
    return dk_status(DK_OK);
  });
}

// All else is as the inner one declares it.  Its extensions would be given our handle: none.
dk_provider describe() {
  dk_provider made = inner;
  made.name = "minimal-cc";
  made.built_with = "C++17";
  made.help = "What a provider in C++ needs at the boundary: an example to copy.";
  made.ops = &ops;
  made.open = open_store;
  made.close = [](void *self) { delete static_cast<store *>(self); };
  made.extension = [](void *, const char *) -> const void * { return nullptr; };
  return made;
}
const dk_provider provider = describe();

} // namespace

const dk_provider *durakit_provider_2(std::uint32_t) { return &provider; }
