// SPDX-License-Identifier: 0BSD
//! provider.rs - what a provider in Rust needs at the boundary.  It stands before minimal.c, whose
//! rules it leaves as they are: each operation enters Rust, calls the one in C, and every upcall
//! comes back through Rust on its way to the host.
//!
//!   - What `open` makes is a Box: `close` drops it.
//!   - No panic crosses the boundary, for that would end the host's process: every operation runs
//!     inside of `guarded`, which makes a refusal of a panic.
//!   - The structs of the ABI are `repr(C)`, with all members in their order.  Only those that Rust
//!     looks into are written out here.
//!
//! Put your own store where minimal.c is: its operations in the place of `inner`.
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;

// ---- durakit/provider.h -------------------------------------------------------------------------

type Status = i32;
const DK_OK: Status = 0;
const DK_INVALID: Status = 200;
const DK_INTERNAL: Status = 299;
const DK_ABI_MINOR: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy)]
struct Bytes {
    ptr: *const c_char,
    len: usize,
}

impl Bytes {
    fn of(text: &str) -> Bytes {
        Bytes { ptr: text.as_ptr().cast(), len: text.len() }
    }
}

/// A struct of the ABI that is only passed on.
type Passed = *const c_void;

/// The upcalls.  Those that stay `Passed` are not made by minimal.c.
#[repr(C)]
#[derive(Clone, Copy)]
struct Host {
    struct_size: u32,
    abi_minor: u32,
    fail: unsafe extern "C" fn(*mut Call, Status, Bytes) -> Status,
    turn: unsafe extern "C" fn(*mut Call, Passed) -> Status,
    kv: Passed,
    event: unsafe extern "C" fn(*mut Call, Passed) -> Status,
    message: unsafe extern "C" fn(*mut Call, Passed) -> Status,
    work: unsafe extern "C" fn(*mut Call, Passed) -> Status,
    stolen: unsafe extern "C" fn(*mut Call, Passed),
    cancelled_rows: unsafe extern "C" fn(*mut Call, Passed),
    reset: Passed,
    execution: unsafe extern "C" fn(*mut Call, Passed) -> Status,
    cancelled: Passed,
    cancel_fd: Passed,
    wait: Passed,
    now: unsafe extern "C" fn(*const Host) -> i64,
    log: unsafe extern "C" fn(*const Host, i32, Bytes),
    service: Passed,
    instance: Passed,
    stats: Passed,
    removed: Passed,
    duplicate: Option<unsafe extern "C" fn(*mut Call, i32, u64)>,
}

#[repr(C)]
struct Setting {
    key: *const c_char,
    value: Bytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Open {
    struct_size: u32,
    flags: u32,
    settings: *const Setting,
    n_settings: usize,
}

#[repr(C)]
struct Param {
    key: *const c_char,
    kind: *const c_char,
    fallback: *const c_char,
    help: *const c_char,
    flags: u32,
    reserved: u32,
}

type Enqueue = unsafe extern "C" fn(*mut c_void, *mut Call, Passed) -> Status;
type Fetch = unsafe extern "C" fn(*mut c_void, *mut Call, Passed) -> Status;
type Ack = unsafe extern "C" fn(*mut c_void, *mut Call, Bytes, Passed) -> Status;
type Abandon = unsafe extern "C" fn(*mut c_void, *mut Call, Bytes, i64, i32) -> Status;
type Renew = unsafe extern "C" fn(*mut c_void, *mut Call, Bytes, i64) -> Status;

/// NULL of C is None.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ops {
    struct_size: u32,
    reserved: u32,
    enqueue_for_orchestrator: Option<Enqueue>,
    fetch_orchestration_item: Option<Fetch>,
    ack_orchestration_item: Option<Ack>,
    abandon_orchestration_item: Option<Abandon>,
    renew_orchestration_item_lock: Option<Renew>,
    fetch_work_item: Option<Fetch>,
    ack_work_item: Option<Ack>,
    abandon_work_item: Option<Abandon>,
    renew_work_item_lock: Option<Renew>,
    read_history: Option<Fetch>,
    enqueue_for_worker: Option<Enqueue>,
    interrupt: Option<unsafe extern "C" fn(*mut c_void)>,
    release_fetch: Option<unsafe extern "C" fn(*mut c_void, *mut Call, u64) -> Status>,
}

type OpenFn = unsafe extern "C" fn(*const Host, *mut Call, *const Open, *mut *mut c_void) -> Status;

#[repr(C)]
#[derive(Clone, Copy)]
struct Provider {
    magic: u32,
    struct_size: u32,
    stamp: u64,
    abi_minor: u32,
    clocks: u32,
    thread_model: i32,
    durable: i32,
    shared: i32,
    unload: i32,
    abi_vendor: *const c_char,
    name: *const c_char,
    version: *const c_char,
    built_with: *const c_char,
    help: *const c_char,
    params: *const Param,
    extensions: *const *const c_char,
    limits: Passed,
    ops: *const Ops,
    open: OpenFn,
    close: unsafe extern "C" fn(*mut c_void),
    destroy_store: unsafe extern "C" fn(*const Host, *mut Call, *const Open) -> Status,
    extension: unsafe extern "C" fn(*mut c_void, *const c_char) -> Passed,
    runtime: u32,
    reserved: u32,
}
// Its members are constant, and what they point to is, too.
unsafe impl Send for Provider {}
unsafe impl Sync for Provider {}
unsafe impl Sync for Param {}

extern "C" {
    // minimal.c, which the Makefile compiles with this name for its entry.
    fn minimal_provider(host_minor: u32) -> *const Provider;
}

fn inner() -> &'static Provider {
    unsafe { &*minimal_provider(DK_ABI_MINOR) }
}

// ---- no panic crosses the boundary --------------------------------------------------------------

/// What C sees as its `struct dk_call`: the host's own, and whose it is.
#[repr(C)]
struct Call {
    host: *const Host,
    call: *mut Call,
}

unsafe fn fail(host: *const Host, call: *mut Call, status: Status, text: &str) -> Status {
    ((*host).fail)(call, status, Bytes::of(text))
}

/// [ABI-7]
unsafe fn guarded(
    host: *const Host,
    call: *mut Call,
    operation: &str,
    body: impl FnOnce() -> Status,
) -> Status {
    let caught = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(status) => return status,
        Err(caught) => caught,
    };
    let why = match caught.downcast_ref::<String>() {
        Some(text) => text.as_str(),
        None => caught.downcast_ref::<&str>().copied().unwrap_or("no text"),
    };
    fail(host, call, DK_INTERNAL, &format!("{operation}: panicked: {why}"))
}

// ---- upcalls: from C through Rust to the host ---------------------------------------------------

unsafe extern "C" fn up_fail(c: *mut Call, status: Status, why: Bytes) -> Status {
    ((*(*c).host).fail)((*c).call, status, why)
}
unsafe extern "C" fn up_turn(c: *mut Call, head: Passed) -> Status {
    ((*(*c).host).turn)((*c).call, head)
}
unsafe extern "C" fn up_event(c: *mut Call, event: Passed) -> Status {
    ((*(*c).host).event)((*c).call, event)
}
unsafe extern "C" fn up_message(c: *mut Call, message: Passed) -> Status {
    ((*(*c).host).message)((*c).call, message)
}
unsafe extern "C" fn up_work(c: *mut Call, work: Passed) -> Status {
    ((*(*c).host).work)((*c).call, work)
}
unsafe extern "C" fn up_stolen(c: *mut Call, stolen: Passed) {
    ((*(*c).host).stolen)((*c).call, stolen)
}
unsafe extern "C" fn up_cancelled_rows(c: *mut Call, report: Passed) {
    ((*(*c).host).cancelled_rows)((*c).call, report)
}
unsafe extern "C" fn up_execution(c: *mut Call, execution: Passed) -> Status {
    ((*(*c).host).execution)((*c).call, execution)
}
unsafe extern "C" fn up_duplicate(c: *mut Call, list: i32, index: u64) {
    if let Some(duplicate) = (*(*c).host).duplicate {
        duplicate((*c).call, list, index)
    }
}
unsafe extern "C" fn up_now(host: *const Host) -> i64 {
    let between = host as *const Between;
    ((*(*between).host).now)((*between).host)
}
unsafe extern "C" fn up_log(host: *const Host, level: i32, line: Bytes) {
    let between = host as *const Between;
    ((*(*between).host).log)((*between).host, level, line)
}

/// The host that C sees.  Its table comes first, so that `now` finds the real one behind it.
#[repr(C)]
struct Between {
    table: Host,
    host: *const Host, // the pointer, never a copy of the table
}

/// A member beyond the size of the host's table is absent.  [ABI-9]
unsafe fn has_duplicate(host: *const Host) -> bool {
    (*host).struct_size as usize >= std::mem::size_of::<Host>() && (*host).duplicate.is_some()
}

unsafe fn between(host: *const Host) -> Box<Between> {
    let none = std::ptr::null();
    Box::new(Between {
        table: Host {
            struct_size: std::mem::size_of::<Host>() as u32,
            abi_minor: (*host).abi_minor,
            fail: up_fail,
            turn: up_turn,
            kv: none,
            event: up_event,
            message: up_message,
            work: up_work,
            stolen: up_stolen,
            cancelled_rows: up_cancelled_rows,
            reset: none,
            execution: up_execution,
            cancelled: none,
            cancel_fd: none,
            wait: none,
            now: up_now,
            log: up_log,
            service: none,
            instance: none,
            stats: none,
            removed: none,
            duplicate: if has_duplicate(host) { Some(up_duplicate) } else { None },
        },
        host,
    })
}

// ---- what a handle owns -------------------------------------------------------------------------

struct Store {
    between: Box<Between>,
    inner: *mut c_void,
    panic_in: String, // the operation that panics, to see what becomes of it; "": none
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

impl Store {
    /// Counting may panic: it comes before the operation, which then is done or not as it says.
    unsafe fn run(
        &self,
        call: *mut Call,
        operation: &'static str,
        body: impl FnOnce(*mut Call) -> Status,
    ) -> Status {
        let host = self.between.host;
        guarded(host, call, operation, || {
            *self.calls.lock().unwrap().entry(operation).or_insert(0) += 1;
            if self.panic_in == operation {
                panic!("the setting `panic` names this operation");
            }
            body(&mut Call { host, call })
        })
    }

    fn log(&self, line: &str) {
        unsafe { ((*self.between.host).log)(self.between.host, 0, Bytes::of(line)) }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        unsafe { (inner().close)(self.inner) };
        let mut line = format!("minimal-rs: closed by {:?} after", std::thread::current().id());
        for (operation, n) in self.calls.lock().unwrap().iter() {
            line += &format!(" {operation}={n}");
        }
        self.log(&line);
    }
}

unsafe fn setting(open: &Open, key: &str) -> String {
    for i in 0..open.n_settings {
        let setting = &*open.settings.add(i);
        if CStr::from_ptr(setting.key).to_bytes() == key.as_bytes() {
            let bytes = std::slice::from_raw_parts(setting.value.ptr.cast(), setting.value.len);
            return String::from_utf8_lossy(bytes).into_owned();
        }
    }
    String::new()
}

unsafe extern "C" fn open_store(
    host: *const Host,
    call: *mut Call,
    open: *const Open,
    ret_self: *mut *mut c_void,
) -> Status {
    guarded(host, call, "open", || {
        let between = between(host);
        let panic_in = setting(&*open, "panic");
        if panic_in == "open" {
            panic!("the setting `panic` names this operation");
        }
        let mut inner_self = std::ptr::null_mut();
        let for_inner = Open { settings: std::ptr::null(), n_settings: 0, ..*open };
        let table = &between.table as *const Host;
        let status = (inner().open)(table, &mut Call { host, call }, &for_inner, &mut inner_self);
        if status != DK_OK {
            return status;
        }
        let calls = Mutex::new(BTreeMap::new());
        let store = Store { between, inner: inner_self, panic_in, calls };
        store.log(&format!("minimal-rs: opened by {:?}", std::thread::current().id()));
        *ret_self = Box::into_raw(Box::new(store)).cast();
        DK_OK
    })
}

/// There is no call to refuse: a panic in here can only be dropped.
unsafe extern "C" fn close_store(this: *mut c_void) {
    let _ = catch_unwind(|| drop(Box::from_raw(this as *mut Store)));
}

unsafe extern "C" fn destroy_store(
    host: *const Host,
    call: *mut Call,
    open: *const Open,
) -> Status {
    guarded(host, call, "destroy_store", || {
        let between = between(host);
        let table = &between.table as *const Host;
        (inner().destroy_store)(table, &mut Call { host, call }, open)
    })
}

/// NULL for every unknown id: there is none.  [ABI-3]
unsafe extern "C" fn extension(_this: *mut c_void, _id: *const c_char) -> Passed {
    std::ptr::null()
}

// ---- the table ----------------------------------------------------------------------------------

macro_rules! operations {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(unsafe extern "C" fn $name(this: *mut c_void, call: *mut Call, $($argument: $type),*)
            -> Status {
            let store = &*(this as *const Store);
            store.run(call, stringify!($name), |through| match (*inner().ops).$name {
                Some(operation) => operation(store.inner, through, $($argument),*),
                None => fail(store.between.host, call, DK_INVALID, "not offered"),
            })
        })*
    };
}
operations! {
    enqueue_for_orchestrator(item: Passed);
    fetch_orchestration_item(request: Passed);
    ack_orchestration_item(token: Bytes, result: Passed);
    abandon_orchestration_item(token: Bytes, delay_ms: i64, ignore_attempt: i32);
    renew_orchestration_item_lock(token: Bytes, extend_ms: i64);
    fetch_work_item(request: Passed);
    ack_work_item(token: Bytes, result: Passed);
    abandon_work_item(token: Bytes, delay_ms: i64, ignore_attempt: i32);
    renew_work_item_lock(token: Bytes, extend_ms: i64);
    read_history(request: Passed);
    enqueue_for_worker(item: Passed);
}

static OPS: Ops = Ops {
    struct_size: std::mem::size_of::<Ops>() as u32,
    reserved: 0,
    enqueue_for_orchestrator: Some(enqueue_for_orchestrator),
    fetch_orchestration_item: Some(fetch_orchestration_item),
    ack_orchestration_item: Some(ack_orchestration_item),
    abandon_orchestration_item: Some(abandon_orchestration_item),
    renew_orchestration_item_lock: Some(renew_orchestration_item_lock),
    fetch_work_item: Some(fetch_work_item),
    ack_work_item: Some(ack_work_item),
    abandon_work_item: Some(abandon_work_item),
    renew_work_item_lock: Some(renew_work_item_lock),
    read_history: Some(read_history),
    enqueue_for_worker: Some(enqueue_for_worker),
    interrupt: None,
    release_fetch: None,
};

static PARAMS: [Param; 2] = [
    Param {
        key: c"panic".as_ptr(),
        kind: c"string".as_ptr(),
        fallback: std::ptr::null(),
        help: c"the operation that panics, to see what becomes of it".as_ptr(),
        flags: 0,
        reserved: 0,
    },
    Param {
        key: std::ptr::null(), // the end
        kind: std::ptr::null(),
        fallback: std::ptr::null(),
        help: std::ptr::null(),
        flags: 0,
        reserved: 0,
    },
];

/// DK_RUNTIME_ABORTS: Rust's library ends the process where memory runs out.  [ABI-7]
const RUNTIME_ABORTS: u32 = 4;

/// All else is as minimal.c declares it.  `std::thread::current()` has a thread-local destructor,
/// which keeps the file mapped: so it is not one that may be unloaded.  [MEM-4]
#[no_mangle]
pub extern "C" fn durakit_provider_2(_host_minor: u32) -> *const c_void {
    static PROVIDER: std::sync::OnceLock<Provider> = std::sync::OnceLock::new();
    let provider = PROVIDER.get_or_init(|| Provider {
        struct_size: std::mem::size_of::<Provider>() as u32,
        unload: 0,
        runtime: RUNTIME_ABORTS,
        name: c"minimal-rs".as_ptr(),
        built_with: c"Rust".as_ptr(),
        help: c"What a provider in Rust needs at the boundary: an example to copy.".as_ptr(),
        params: PARAMS.as_ptr(),
        ops: &OPS,
        open: open_store,
        close: close_store,
        destroy_store,
        extension,
        ..*inner()
    });
    (provider as *const Provider).cast()
}
