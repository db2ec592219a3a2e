// SPDX-License-Identifier: 0BSD
// minimal.cc - the provider of minimal.c in C++17, to be copied and changed.
//
// The same rules, told there clause by clause.  What is different in C++: containers keep the rows;
// a refusal is an exception; and no exception crosses the boundary, for that would end the host's
// process: every operation runs inside of guarded().  Each operation does what can throw first, and
// then what cannot, so an exception leaves the store as it was.
#include <durakit/provider.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

// ---- what is stored -----------------------------------------------------------------------------

using text = std::optional<std::string>; // absent and empty are two things

text keep(dk_bytes b) { return b.ptr ? text(std::in_place, b.ptr, b.len) : std::nullopt; }
dk_bytes bytes(const text &t) { return t ? dk_bytes{t->data(), t->size()} : dk_bytes{nullptr, 0}; }
std::string_view view(dk_bytes b) { return {b.ptr, b.len}; }
bool same(const text &a, dk_bytes b) { return a && b.ptr && *a == view(b); } // [TURN-5]

// Who holds something: number of the fetch (0: nobody), and until when.
struct lease {
  std::uint64_t token = 0;
  std::int64_t until = 0;
  bool is_free(std::int64_t now) const { return token == 0 || until <= now; } // [TIME-4]
};

struct message {
  text id, payload;
  std::int64_t visible_at, enqueued_at;
  std::uint64_t arrival;
  std::uint64_t turn = 0; // the token of the turn that brought it last
  std::uint32_t attempt = 0;
};

// An activity is known by its execution and its own id: so it can be deleted by them.  [CANCEL-1]
using identity = std::pair<std::uint64_t, std::uint64_t>;
struct activity {
  text tag, payload, worker;
  std::int64_t visible_at;
  std::uint64_t place; // the lowest is handed out first: nothing starves.  [WORK-2]
  lease held;
  std::uint32_t attempt = 0;
};

struct execution {
  std::map<std::uint64_t, text> events;
  text output;
  std::int32_t status = DK_RUNNING;
  std::int64_t started_at = 0, completed_at = 0;
  std::optional<dk_version> pin;
  std::uint64_t last_event_id() const { return events.empty() ? 0 : events.rbegin()->first; }
};

// It is here as soon as a message names it, and known once a turn was committed (birth).
struct instance {
  text name, version, parent, owner;
  std::uint64_t birth = 0, committed = 0, place = 0;
  lease held;
  std::list<message> messages; // by effective visible time, then by arrival.  [QUEUE-2]
  std::map<identity, activity> work;
  std::map<std::uint64_t, execution> executions;
  std::uint64_t current() const { return executions.empty() ? 0 : executions.rbegin()->first; }
};

struct store {
  const dk_host *host; // the pointer, never a copy of the table
  std::map<std::string, instance, std::less<>> instances;
  std::uint64_t counter = 0; // gives tokens, arrivals, places: none ever comes twice.  [TOKEN-1]
};

// ---- helpers ------------------------------------------------------------------------------------

struct refusal { // caught in guarded(), which says why
  dk_status status;
  const char *why;
};
struct stopped { // an upcall was refused: stop, undo, and return its answer.  [ABI-4]
  dk_status status;
};

void up(dk_status answer) {
  if (answer != DK_OK)
    throw stopped{answer};
}

dk_status fail(const dk_host *host, dk_call *call, const char *name, const refusal &r) noexcept {
  char line[200];
  std::size_t n = 0;
  for (const char *part : {name, ": ", r.why})
    for (; *part && n < sizeof line; part++)
      line[n++] = *part;
  return host->fail(call, r.status, {line, n});
}

// No exception crosses the boundary.  [ABI-7]
template <class Body>
dk_status guarded(const dk_host *host, dk_call *call, const char *name, Body body) noexcept {
  try {
    return body();
  } catch (const stopped &s) {
    return s.status;
  } catch (const refusal &r) {
    return fail(host, call, name, r);
  } catch (const std::bad_alloc &) {
    return fail(host, call, name, {DK_NO_MEMORY, "out of memory"});
  } catch (...) {
    return fail(host, call, name, {DK_INTERNAL, "an exception that was not expected"});
  }
}

void refuse_if(bool what, dk_status status, const char *why) {
  if (what)
    throw refusal{status, why};
}

std::int64_t later(std::int64_t now, std::int64_t ms) { // sums saturate.  [TIME-5]
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  return now > most - ms ? most : now + ms;
}

// t17 for a turn, w18 for an activity, so that neither passes for the other.  [TOKEN-8]
struct token_text {
  char chars[24];
  std::size_t len;
  token_text(char letter, std::uint64_t number) noexcept : chars{letter} {
    len = std::size_t(std::to_chars(chars + 1, chars + sizeof chars, number).ptr - chars);
  }
  dk_bytes bytes() const { return {chars, len}; }
};

bool is_token(std::uint64_t number, char letter, dk_bytes token) {
  return number && view(token_text(letter, number).bytes()) == view(token);
}

bool operator<=(const dk_version &a, const dk_version &b) { // as numbers.  [PIN-4]
  return std::tie(a.major, a.minor, a.patch) <= std::tie(b.major, b.minor, b.patch);
}

bool fits(const instance &i, const dk_fetch_turn *request) {
  const auto pin = i.executions.empty() ? std::nullopt : i.executions.rbegin()->second.pin;
  const dk_version_range *end = request->ranges + request->n_ranges;
  return !request->ranges || std::any_of(request->ranges, end, [&](const dk_version_range &range) {
    return !pin || (range.min <= *pin && *pin <= range.max);
  });
}

bool fits(const activity &a, const dk_fetch_work *request) { // [TAG-1]
  if (!a.tag || request->tag_rule == DK_TAG_ANY)
    return request->tag_rule != DK_TAG_LISTED;
  return request->tag_rule != DK_TAG_UNTAGGED &&
         std::any_of(request->tags, request->tags + request->n_tags,
                     [&](dk_bytes tag) { return same(a.tag, tag); });
}

bool is_bare(const dk_turn_result *r) { // messages and nothing else.  [ACK-8]
  return !r->status && !r->n_events && !r->n_worker_items && !r->n_cancelled_activities &&
         !r->n_cancelled_messages && !r->output.ptr && !r->name.ptr && !r->version.ptr &&
         !r->parent_instance.ptr && !r->owner.ptr && !r->pinned;
}

identity id_of(const dk_item *item) { return {item->execution_id, item->activity_id}; }

// ---- one running operation ----------------------------------------------------------------------

class operation {
public:
  operation(store &s_, dk_call *call_) : s(s_), host(s_.host), call(call_) {}

  void enqueue_message(const dk_item *item) {
    refuse_message(item, DK_REPEATED);
    put(of(item->instance), one(make_message(item)));
  }

  void enqueue_activity(const dk_item *item) {
    refuse_activity(of(item->instance), item, DK_REPEATED);
    of(item->instance).work.emplace(id_of(item), make_activity(item));
  }

  // ---- turns: look, hand up, and only then write ------------------------------------------------

  dk_status fetch_turn(const dk_fetch_turn *request) {
    std::pair<const std::string, instance> *found = nullptr;
    for (auto &entry : s.instances) {
      const instance &i = entry.second;
      if (i.held.is_free(now) && !i.messages.empty() && i.messages.front().visible_at <= now &&
          fits(i, request) && (!found || i.place < found->second.place))
        found = &entry;
    }
    if (!found)
      return DK_NOTHING; // with this thread model the host waits in our place
    instance &i = found->second;
    const std::uint64_t token = ++s.counter;
    const std::int64_t until = later(now, request->lock_ms);
    const auto end = hand_up_turn(found->first, i, token, until, request);
    for (auto m = i.messages.begin(); m != end; ++m) { // nothing was written before  [TURN-12]
      m->attempt++;
      m->turn = token;
    }
    i.held = {token, until};
    i.place = token;
    return DK_OK;
  }

  // ---- the commit: refuse, make what is new, then change what cannot fail -----------------------

  void commit(dk_bytes token, const dk_turn_result *r) {
    for (auto &entry : s.instances)
      if ((r->flags & DK_REPEATED) && is_token(entry.second.committed, 't', token))
        return; // it was applied, and only the answer was lost.  [ACK-11]
    instance &turn = held_turn(token);
    refuse_commit(turn, r);
    const std::uint64_t before = s.counter;

    std::list<std::pair<instance *, std::list<message>>> messages;
    for (std::size_t n = 0; n < r->n_orchestrator_items; n++)
      messages.emplace_back(&of(r->orchestrator_items[n]->instance),
                            one(make_message(r->orchestrator_items[n])));
    std::map<identity, activity> work;
    for (std::size_t n = 0; n < r->n_worker_items; n++)
      work.emplace(id_of(r->worker_items[n]), make_activity(r->worker_items[n]));
    std::map<std::uint64_t, text> events;
    for (std::size_t n = 0; n < r->n_events; n++)
      events.emplace(r->events[n].event_id, keep(r->events[n].payload));
    text output = keep(r->output), name = keep(r->name), version = keep(r->version);
    text parent = keep(r->parent_instance), owner = keep(r->owner);
    std::map<std::uint64_t, execution> begun;
    if (r->execution_id > turn.current())
      begun[r->execution_id].started_at = now;

    turn.messages.remove_if([&](const message &m) { return m.turn == turn.held.token; }); // [ACK-3]
    turn.executions.merge(begun);
    turn.work.merge(work);                 // insert first,
    delete_activities(turn, r, before);    // delete second.  [CANCEL-3]
    for (auto &[target, message] : messages)
      put(*target, std::move(message));
    for (std::size_t n = 0; n < r->n_cancelled_messages; n++)
      turn.messages.remove_if(
        [&](const message &m) { return same(m.id, r->cancelled_messages[n]); });
    if (r->execution_id) {
      execution &e = turn.executions.rbegin()->second;
      e.events.merge(events);
      if (r->status != DK_STATUS_KEEP) { // with a status the output goes, too.  [ACK-9]
        e.status = r->status;
        e.completed_at = r->status == DK_RUNNING ? 0 : now;
        e.output = std::move(output);
      }
      if (r->pinned)
        e.pin = *r->pinned;
      for (auto [to, from] : {std::pair(&turn.name, &name), std::pair(&turn.version, &version),
                              std::pair(&turn.parent, &parent)})
        if (*from)
          *to = std::move(*from);
      turn.owner = std::move(owner); // in any case.  [TURN-5]
      turn.birth = turn.birth ? turn.birth : turn.held.token;
    }
    turn.committed = std::exchange(turn.held.token, 0);
  }

  void abandon_turn(dk_bytes token, std::int64_t delay_ms, std::int32_t ignore_attempt) {
    instance &turn = held_turn(token);
    std::list<message> given; // out, and each in again in its place.  [TURN-7]
    for (auto m = turn.messages.begin(); m != turn.messages.end();) {
      auto next = std::next(m);
      if (m->turn == turn.held.token)
        given.splice(given.end(), turn.messages, m);
      m = next;
    }
    while (!given.empty()) {
      message &m = given.front();
      m.visible_at = delay_ms ? later(now, delay_ms) : m.visible_at;
      m.attempt -= ignore_attempt && m.attempt > 0;
      m.turn = 0;
      std::list<message> first;
      first.splice(first.end(), given, given.begin());
      put(turn, std::move(first));
    }
    turn.held.token = 0;
  }

  void renew_turn(dk_bytes token, std::int64_t extend_ms) {
    held_turn(token).held.until = later(now, extend_ms); // later or sooner than before.  [TURN-9]
  }

  // ---- activities: if the row is there, it is work ----------------------------------------------

  // One item a call, whatever max_items says: fewer may come.  [WORK-8]
  dk_status fetch_work(const dk_fetch_work *request) {
    refuse_if(request->tag_rule < 0 || request->tag_rule > DK_TAG_ANY || request->session_rule,
              DK_UNSUPPORTED, "a rule that is not known here");
    const std::string *name = nullptr;
    std::pair<const identity, activity> *found = nullptr;
    for (auto &[id, i] : s.instances)
      for (auto &entry : i.work) {
        const activity &a = entry.second;
        if (a.visible_at <= now && a.held.is_free(now) && fits(a, request) &&
            (!found || a.place < found->second.place)) {
          found = &entry;
          name = &id;
        }
      }
    if (!found)
      return DK_NOTHING;
    activity &a = found->second;
    const std::uint64_t token = ++s.counter;
    const token_text shown('w', token);
    const std::int64_t until = later(now, request->lock_ms);
    text worker = keep(request->owner);
    dk_item item{};
    item.struct_size = sizeof item;
    item.instance = {name->data(), name->size()};
    std::tie(item.execution_id, item.activity_id) = found->first;
    item.tag = bytes(a.tag);
    item.visible_at = a.visible_at;
    item.payload = bytes(a.payload);
    dk_work work{sizeof work, a.attempt + 1, shown.bytes(), &item, now, left(until)};
    up(host->work(call, &work));
    a.attempt++;
    a.held = {token, until};
    a.place = token;
    a.worker = std::move(worker);
    return DK_OK;
  }

  // No row, no completion: a cancelled activity ends here for its worker.  [WORK-4, CANCEL-5]
  void ack_work(dk_bytes token, const dk_work_result *result) {
    const auto [i, row] = held_work(token);
    refuse_if(result->flags & ~unsigned(DK_REPEATED), DK_UNSUPPORTED, "a flag not known here");
    if (result->completion) {
      refuse_message(result->completion, 0);
      put(of(result->completion->instance), one(make_message(result->completion)));
    }
    i->work.erase(row);
  }

  void abandon_work(dk_bytes token, std::int64_t delay_ms, std::int32_t ignore_attempt) {
    activity &a = held_work(token).second->second;
    a.visible_at = later(now, delay_ms); // without a delay: now.  [WORK-7]
    a.attempt -= ignore_attempt && a.attempt > 0;
    a.held.token = 0;
  }

  void renew_work(dk_bytes token, std::int64_t extend_ms) {
    held_work(token).second->second.held.until = later(now, extend_ms);
  }

  void read_history(const dk_read_history *request) {
    const auto i = s.instances.find(view(request->instance));
    if (i == s.instances.end())
      return; // what does not exist brings nothing.  [HIST-2]
    const auto &all = i->second.executions;
    const auto e = all.find(request->execution_id ? request->execution_id : i->second.current());
    if (e == all.end())
      return;
    dk_execution head{sizeof head, e->second.status, e->first, e->second.last_event_id(),
                      e->second.started_at, e->second.completed_at, bytes(e->second.output)};
    up(host->execution(call, &head));
    hand_up_events(e->second, request->from_event, request->max_events);
  }

private:
  store &s;
  const dk_host *host;
  dk_call *call;
  const std::int64_t now = host->now(host); // read once.  [TIME-1]
  std::int32_t list = 0; // of a commit, while its items are looked for in the store: DK_LIST_...
  std::uint64_t index = 0;

  // Finds an instance, or makes one that no host can see yet.
  instance &of(dk_bytes id) {
    const auto [entry, is_new] = s.instances.try_emplace(std::string(view(id)));
    if (is_new)
      entry->second.place = ++s.counter;
    return entry->second;
  }

  std::int64_t effective(const dk_item *item) const {
    return std::max(item->visible_at, later(now, item->delay_ms));
  }
  message make_message(const dk_item *item) {
    return {keep(item->id), keep(item->payload), effective(item), now, ++s.counter};
  }
  activity make_activity(const dk_item *item) {
    return {keep(item->tag), keep(item->payload), {}, effective(item), ++s.counter, {}};
  }
  static std::list<message> one(message m) { // a node of its own, so that put cannot fail
    std::list<message> list;
    list.push_back(std::move(m));
    return list;
  }
  static void put(instance &i, std::list<message> one) noexcept {
    const message &m = one.front();
    const auto place = std::find_if(i.messages.begin(), i.messages.end(), [&](const message &o) {
      return std::tie(o.visible_at, o.arrival) > std::tie(m.visible_at, m.arrival);
    });
    i.messages.splice(place, one);
  }

  // A newer host's wish is refused, not ignored.  [ABI-11, QUEUE-4, CANCEL-11]
  void refuse_message(const dk_item *item, std::uint32_t flags) {
    refuse_if(item->flags & ~flags, DK_UNSUPPORTED, "a flag that is not known here");
    for (const message &m : of(item->instance).messages)
      refuse_stored(same(m.id, item->id), "a message with this id is stored");
  }
  void refuse_activity(const instance &i, const dk_item *item, std::uint32_t flags) {
    refuse_if(item->flags & ~flags, DK_UNSUPPORTED, "a flag that is not known here");
    refuse_stored(i.work.count(id_of(item)), "this activity is stored");
  }
  // Of a commit it names the item; an older host cannot be told.  [ACK-15]
  void refuse_stored(bool is_stored, const char *why) {
    if (is_stored && list && DK_HAS(dk_host, host, duplicate))
      host->duplicate(call, list, index);
    refuse_if(is_stored, DK_DUPLICATE, why);
  }

  // Form first, then what is stored, and that as it was before the commit.  [ERR-5]
  void refuse_commit(const instance &turn, const dk_turn_result *r) {
    const std::uint64_t current = turn.current();
    refuse_if((r->flags & ~unsigned(DK_REPEATED)) || r->status < 0 || r->status > DK_CANCELLED,
              DK_UNSUPPORTED, "a flag or status that is not known here");
    refuse_if(!r->execution_id && !is_bare(r), DK_INVALID, "an empty one brings messages only");
    refuse_if(r->execution_id && !current && (!r->name.ptr || !r->version.ptr), DK_INVALID,
              "the first commit needs name and version");
    refuse_if(r->execution_id && r->execution_id != current && r->execution_id != current + 1,
              DK_INVALID, "this execution is neither the current one nor the next");
    list = DK_LIST_EVENTS;
    refuse_stored(r->n_events && r->execution_id == current &&
                  r->events[0].event_id <= turn.executions.at(current).last_event_id(),
                  "an event id is not above the last one");
    list = DK_LIST_WORKER_ITEMS;
    for (index = 0; index < r->n_worker_items; index++)
      refuse_activity(turn, r->worker_items[index], 0);
    list = DK_LIST_ORCHESTRATOR_ITEMS;
    for (index = 0; index < r->n_orchestrator_items; index++)
      refuse_message(r->orchestrator_items[index], 0);
  }

  // A token counts while its lease lives, and not a millisecond longer.  [TOKEN-2 to TOKEN-6]
  lease &alive(lease &held) {
    refuse_if(held.is_free(now), DK_LOCK_LOST, "the lease has run out");
    return held;
  }
  instance &held_turn(dk_bytes token) {
    for (auto &entry : s.instances)
      if (is_token(entry.second.held.token, 't', token)) {
        alive(entry.second.held);
        return entry.second;
      }
    throw refusal{DK_LOCK_LOST, "this turn is done, taken over, or was never handed out"};
  }
  std::pair<instance *, std::map<identity, activity>::iterator> held_work(dk_bytes token) {
    for (auto &entry : s.instances)
      for (auto row = entry.second.work.begin(); row != entry.second.work.end(); ++row)
        if (is_token(row->second.held.token, 'w', token)) {
          alive(row->second.held);
          return {&entry.second, row};
        }
    throw refusal{DK_LOCK_LOST, "done, cancelled, taken over, or never handed out"};
  }

  std::int64_t left(std::int64_t until) const {
    const std::int64_t ms = until - host->now(host);
    refuse_if(ms < 1, DK_BUSY, "the lease ran out meanwhile");
    return ms;
  }

  void hand_up_events(const execution &e, std::uint64_t from, std::uint64_t most) {
    for (auto i = e.events.lower_bound(from); i != e.events.end(); ++i) {
      const dk_event event{i->first, bytes(i->second)};
      up(host->event(call, &event));
      if (--most == 0) // 0 at first: all
        break;
    }
  }

  // Head, history, messages; the bounds cut from the end, but one message comes always.  [TURN-2]
  std::list<message>::iterator hand_up_turn(const std::string &id, instance &i,
                                            std::uint64_t token, std::int64_t until,
                                            const dk_fetch_turn *request) {
    const token_text shown('t', token);
    const bool is_warm = same(i.owner, request->owner);
    dk_turn_head head{};
    head.struct_size = sizeof head;
    head.lock_token = shown.bytes();
    head.instance = {id.data(), id.size()};
    head.now = now;
    head.lease_left_ms = left(until);
    if (i.birth) { // of an unknown instance all this stays absent.  [TURN-3]
      const execution &e = i.executions.at(i.current());
      head.known = 1;
      head.status = e.status;
      head.name = bytes(i.name);
      head.version = bytes(i.version);
      head.parent_instance = bytes(i.parent);
      head.birth = i.birth;
      head.execution_id = i.current();
      head.last_event_id = e.last_event_id();
      head.history_from =
        is_warm || e.events.empty() ? e.last_event_id() + 1 : e.events.begin()->first;
    }
    up(host->turn(call, &head));
    if (i.birth && !is_warm)
      hand_up_events(i.executions.at(i.current()), 0, 0);
    std::uint64_t n = 0, total = 0;
    auto m = i.messages.begin();
    for (; m != i.messages.end() && m->visible_at <= now; ++m, n++) {
      total += m->payload ? m->payload->size() : 0;
      if (n > 0 && ((request->max_messages && n == request->max_messages) ||
                    (request->max_bytes && total > request->max_bytes)))
        break;
      const dk_message message{sizeof message, m->attempt + 1, bytes(m->id), bytes(m->payload),
                               m->visible_at, m->enqueued_at};
      up(host->message(call, &message));
    }
    return m;
  }

  // The rows go, locked or not.  That is all there is to cancelling: the worker's next renew and
  // its ack find no row.  Those with a token, of a lease that is over too, are reported as stolen;
  // those that this commit has inserted are not counted.  [CANCEL-1, CANCEL-4, CANCEL-6]
  void delete_activities(instance &turn, const dk_turn_result *r, std::uint64_t before) noexcept {
    dk_cancel_report report{};
    report.struct_size = sizeof report;
    for (std::size_t n = 0; n < r->n_cancelled_activities; n++) {
      const dk_activity &id = r->cancelled_activities[n];
      const auto row = turn.work.find({id.execution_id, id.activity_id});
      if (row == turn.work.end())
        continue; // done already, or listed twice
      if (row->second.held.token) {
        const token_text shown('w', row->second.held.token);
        const dk_stolen stolen{sizeof stolen, 0, id.execution_id, id.activity_id, shown.bytes(),
                               bytes(row->second.worker)};
        host->stolen(call, &stolen);
        report.locked_rows++;
      } else if (row->second.place <= before) {
        report.free_rows++;
      }
      turn.work.erase(row);
    }
    if (r->n_cancelled_activities)
      host->cancelled_rows(call, &report);
  }
};

// ---- the table: every member is an operation inside of guarded() --------------------------------

template <class Body>
dk_status run(void *self, dk_call *call, const char *name, Body body) noexcept {
  store &s = *static_cast<store *>(self);
  return guarded(s.host, call, name, [&] {
    operation op(s, call);
    if constexpr (std::is_void_v<decltype(body(op))>) {
      body(op);
      return dk_status(DK_OK);
    } else {
      return body(op);
    }
  });
}

const dk_ops ops = {
  sizeof(dk_ops), 0,
  [](void *self, dk_call *call, const dk_item *item) {
    return run(self, call, "enqueue_for_orchestrator", [=](auto &op) { op.enqueue_message(item); });
  },
  [](void *self, dk_call *call, const dk_fetch_turn *r) {
    return run(self, call, "fetch_orchestration_item", [=](auto &op) { return op.fetch_turn(r); });
  },
  [](void *self, dk_call *call, dk_bytes token, const dk_turn_result *r) {
    return run(self, call, "ack_orchestration_item", [=](auto &op) { op.commit(token, r); });
  },
  [](void *self, dk_call *call, dk_bytes token, std::int64_t delay, std::int32_t ignore) {
    return run(self, call, "abandon_orchestration_item",
               [=](auto &op) { op.abandon_turn(token, delay, ignore); });
  },
  [](void *self, dk_call *call, dk_bytes token, std::int64_t ms) {
    return run(self, call, "renew_orchestration_item_lock",
               [=](auto &op) { op.renew_turn(token, ms); });
  },
  [](void *self, dk_call *call, const dk_fetch_work *r) {
    return run(self, call, "fetch_work_item", [=](auto &op) { return op.fetch_work(r); });
  },
  [](void *self, dk_call *call, dk_bytes token, const dk_work_result *r) {
    return run(self, call, "ack_work_item", [=](auto &op) { op.ack_work(token, r); });
  },
  [](void *self, dk_call *call, dk_bytes token, std::int64_t delay, std::int32_t ignore) {
    return run(self, call, "abandon_work_item",
               [=](auto &op) { op.abandon_work(token, delay, ignore); });
  },
  [](void *self, dk_call *call, dk_bytes token, std::int64_t ms) {
    return run(self, call, "renew_work_item_lock", [=](auto &op) { op.renew_work(token, ms); });
  },
  [](void *self, dk_call *call, const dk_read_history *r) {
    return run(self, call, "read_history", [=](auto &op) { op.read_history(r); });
  },
  [](void *self, dk_call *call, const dk_item *item) {
    return run(self, call, "enqueue_for_worker", [=](auto &op) { op.enqueue_activity(item); });
  },
  nullptr, // interrupt: nothing blocks
  nullptr, // release_fetch: nobody's answer is lost in one process
};

dk_status open_store(const dk_host *host, dk_call *call, const dk_open *open, void **ret_self) {
  return guarded(host, call, "open", [=] {
    refuse_if(open->flags & ~unsigned(DK_OPEN_CREATE | DK_OPEN_READ_ONLY | DK_OPEN_HOST_CLOCK),
              DK_UNSUPPORTED, "a flag that is not known here");
    refuse_if(!(open->flags & DK_OPEN_HOST_CLOCK), DK_REFUSED, "the clock is the host's");
    refuse_if(!(open->flags & DK_OPEN_CREATE) || (open->flags & DK_OPEN_READ_ONLY), DK_NOT_FOUND,
              "a store in memory is always a new one");
    *ret_self = new store{host, {}};
    return dk_status(DK_OK);
  });
}

const dk_limits limits = {sizeof limits, 255, 1 << 20, 16 << 20, 1000};
const dk_param params[] = {{nullptr, nullptr, nullptr, nullptr, 0, 0}}; // no settings
const char *const extensions[] = {nullptr};

// Declare what holds, no more: it is tested.  [ABI-12]  One call at a time, a store that dies with
// its one handle, and a file that may be unloaded.
const dk_provider provider = {
  DK_MAGIC, sizeof(dk_provider), DK_STAMP, DK_ABI_MINOR, DK_CLOCK_HOST, DK_ONE_AT_A_TIME,
  0, 0, 1, "durakit", "minimal-cc", "1", "C++17",
  "In memory, one call at a time: an example to copy.", params, extensions, &limits, &ops,
  open_store,
  [](void *self) { delete static_cast<store *>(self); },
  [](const dk_host *, dk_call *, const dk_open *) { return dk_status(DK_OK); }, // nothing is left
  [](void *, const char *) -> const void * { return nullptr; }, // no extension.  [ABI-3]
};

} // namespace

const dk_provider *durakit_provider_2(std::uint32_t) { return &provider; }
