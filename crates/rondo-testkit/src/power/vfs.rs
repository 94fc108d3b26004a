//! SQLite's interface to files, over its own for this system.

#![expect(unsafe_code, reason = "SQLite's file layers are tables of C functions")]

use super::volatile::VolatileFile;
use super::{Moment, PowerLoss};
use crate::Dice;
use rusqlite::ffi;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The one disk of this process.
static DISK: OnceLock<Disk> = OnceLock::new();

struct Disk {
    loss: PowerLoss,
    /// SQLite's own layer.
    system: System,
    /// The files by path. Connections to the same database see the same file.
    files: Mutex<HashMap<CString, SharedFile>>,
    dice: Mutex<Dice>,
    /// Syncs of write-ahead logs.
    syncs: Mutex<u64>,
}

type SharedFile = Arc<Mutex<VolatileFile>>;

struct System(*mut ffi::sqlite3_vfs);

// SAFETY: SQLite's layers are used by all threads, and are there for as long as the process.
unsafe impl Send for System {}
// SAFETY: as above.
unsafe impl Sync for System {}

/// SQLite's view of an open file; the system's own follows it in the same memory.
#[repr(C)]
struct OpenFile {
    base: ffi::sqlite3_file,
    /// None of a file that is temporary.
    shared: Option<SharedFile>,
    is_log: bool,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without the third version's functions, which map files into memory.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

pub(super) fn install(loss: PowerLoss) {
    // SAFETY: the default layer is there once SQLite is set up, which this does.
    let system = unsafe {
        assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
        ffi::sqlite3_vfs_find(std::ptr::null())
    };
    assert!(!system.is_null(), "SQLite has a layer of its own");
    let disk = Disk {
        loss,
        system: System(system),
        files: Mutex::default(),
        dice: Mutex::new(Dice::new(loss.seed)),
        syncs: Mutex::default(),
    };
    assert!(DISK.set(disk).is_ok(), "power can be lost in one way only");
    // SAFETY: the layer is copied, and what is changed in it fits the functions below. It is never freed.
    let registered = unsafe {
        let own = ffi::sqlite3_vfs {
            szOsFile: (*system).szOsFile + size_of::<OpenFile>() as c_int,
            zName: c"power-loss".as_ptr(),
            pNext: std::ptr::null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            ..*system
        };
        ffi::sqlite3_vfs_register(Box::into_raw(Box::new(own)), 1)
    };
    assert_eq!(registered, ffi::SQLITE_OK, "SQLite takes the layer");
}

fn disk() -> &'static Disk {
    DISK.get().expect("files are opened after it is installed")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Counts a sync of a log, and loses power if that is the moment.
    fn count_sync(&self) -> u64 {
        let mut syncs = locked(&self.syncs);
        *syncs += 1;
        if self.loss.at == Some(Moment::Before(*syncs)) {
            lose_power();
        }
        *syncs
    }

    /// Returns whether a sector reaches the disk before it is synced.
    fn strays(&self) -> bool {
        self.loss.strays > 0 && locked(&self.dice).roll(100) < self.loss.strays
    }
}

/// Nothing of the process runs after this.
fn lose_power() -> ! {
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// Returns the system's own file, and its functions.
///
/// # Safety
/// `file` is one that [`open`] opened.
unsafe fn system(
    file: *mut ffi::sqlite3_file,
) -> (*mut ffi::sqlite3_file, &'static ffi::sqlite3_io_methods) {
    // SAFETY: it follows the file in the memory that SQLite gave for both.
    unsafe {
        let system = file.cast::<OpenFile>().add(1).cast::<ffi::sqlite3_file>();
        (system, &*(*system).pMethods)
    }
}

/// Returns the file that is in memory; none of one that is temporary.
///
/// # Safety
/// As of [`system`]; SQLite uses an open file from one thread at a time.
unsafe fn shared<'a>(file: *mut ffi::sqlite3_file) -> Option<MutexGuard<'a, VolatileFile>> {
    // SAFETY: the file is open, so that what it shares is there.
    let open = unsafe { &*file.cast::<OpenFile>() };
    open.shared.as_ref().map(|it| locked(it))
}

/// Calls the function of that name of the system's own file.
macro_rules! on_system {
    ($name:ident($file:expr $(, $argument:expr)*)) => {{
        let (file, methods) = system($file);
        match methods.$name {
            Some(function) => function(file $(, $argument)*),
            None => ffi::SQLITE_IOERR,
        }
    }};
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let disk = disk();
    // SAFETY: SQLite gives memory for both files, and a name that outlives the file or none.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let inner = file.cast::<OpenFile>().add(1).cast::<ffi::sqlite3_file>();
        let Some(system_open) = (*disk.system.0).xOpen else {
            return ffi::SQLITE_CANTOPEN;
        };
        let opened = system_open(disk.system.0, name, inner, flags, out);
        if opened != ffi::SQLITE_OK {
            return opened;
        }
        let is_kept =
            ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL;
        let base = ffi::sqlite3_file { pMethods: &METHODS };
        let is_log = flags & ffi::SQLITE_OPEN_WAL != 0;
        file.cast::<OpenFile>().write(OpenFile {
            base,
            shared: None,
            is_log,
        });
        if flags & is_kept != 0 && !name.is_null() {
            let name = CStr::from_ptr(name).to_owned();
            let mut files = locked(&disk.files);
            let shared = files
                .entry(name)
                .or_insert_with(|| Arc::new(Mutex::new(VolatileFile::of(content(file)))));
            (*file.cast::<OpenFile>()).shared = Some(Arc::clone(shared));
        }
    }
    ffi::SQLITE_OK
}

/// Returns the content of a file on the disk.
///
/// # Safety
/// As of [`system`].
unsafe fn content(file: *mut ffi::sqlite3_file) -> Vec<u8> {
    let mut size = 0;
    // SAFETY: the buffer has as many bytes as are read.
    unsafe {
        assert_eq!(on_system!(xFileSize(file, &raw mut size)), ffi::SQLITE_OK);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let count = c_int::try_from(size).expect("the databases of tests are small");
        assert_eq!(
            on_system!(xRead(file, bytes.as_mut_ptr().cast(), count, 0)),
            ffi::SQLITE_OK
        );
        bytes
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    let disk = disk();
    // SAFETY: the name is SQLite's.
    unsafe {
        locked(&disk.files).remove(CStr::from_ptr(name));
        match (*disk.system.0).xDelete {
            Some(delete) => delete(disk.system.0, name, sync),
            None => ffi::SQLITE_IOERR,
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite uses the file no more after this.
    unsafe {
        let closed = on_system!(xClose(file));
        file.cast::<OpenFile>().drop_in_place();
        closed
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    count: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite gives as many bytes as it asks for.
    unsafe {
        let Some(shared) = shared(file) else {
            return on_system!(xRead(file, into, count, at));
        };
        let into = std::slice::from_raw_parts_mut(into.cast::<u8>(), count as usize);
        let there = shared.read(at as usize, into);
        match into.get_mut(there..) {
            Some(rest) if !rest.is_empty() => {
                rest.fill(0);
                ffi::SQLITE_IOERR_SHORT_READ
            }
            _ => ffi::SQLITE_OK,
        }
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    // SAFETY: as of `read`.
    unsafe {
        let Some(mut shared) = shared(file) else {
            return on_system!(xWrite(file, from, count, at));
        };
        let from = std::slice::from_raw_parts(from.cast::<u8>(), count as usize);
        let sectors = shared.write(at as usize, from);
        let strays = sectors.filter(|_| disk().strays());
        put(file, &shared, strays)
    }
}

/// Writes sectors to the disk.
///
/// # Safety
/// As of [`system`].
unsafe fn put(
    file: *mut ffi::sqlite3_file,
    shared: &VolatileFile,
    sectors: impl IntoIterator<Item = usize>,
) -> c_int {
    for number in sectors {
        let (at, bytes) = shared.sector(number);
        // SAFETY: as many bytes are there as are written, at most a sector.
        let put = unsafe {
            on_system!(xWrite(
                file,
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                at as i64
            ))
        };
        if put != ffi::SQLITE_OK {
            return put;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: i64) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        match shared(file) {
            Some(mut shared) => {
                shared.cut(len as usize);
                ffi::SQLITE_OK
            }
            None => on_system!(xTruncate(file, len)),
        }
    }
}

/// Data in the kernel survives the end of this process, so it is not asked to sync.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe {
        let Some(mut shared) = shared(file) else {
            return ffi::SQLITE_OK;
        };
        let is_log = (*file.cast::<OpenFile>()).is_log;
        let number = is_log.then(|| disk().count_sync());
        let (sectors, cut) = shared.sync();
        let mut done = put(file, &shared, sectors);
        if let (ffi::SQLITE_OK, Some(len)) = (done, cut) {
            done = on_system!(xTruncate(file, len as i64));
        }
        if number.is_some_and(|it| disk().loss.at == Some(Moment::After(it))) {
            lose_power();
        }
        done
    }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: the file is open, and SQLite gives room for the size.
    unsafe {
        match shared(file) {
            Some(shared) => {
                *size = shared.len() as i64;
                ffi::SQLITE_OK
            }
            None => on_system!(xFileSize(file, size)),
        }
    }
}

/// Passes functions on as they are.
macro_rules! passed_on {
    ($($name:ident is $method:ident($($argument:ident: $kind:ty),*);)*) => {
        $(unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: what SQLite gives goes to the function it is meant for.
            unsafe { on_system!($method(file $(, $argument)*)) }
        })*
    };
}

passed_on! {
    lock is xLock(level: c_int);
    unlock is xUnlock(level: c_int);
    check_reserved_lock is xCheckReservedLock(out: *mut c_int);
    file_control is xFileControl(what: c_int, argument: *mut c_void);
    sector_size is xSectorSize();
    device_characteristics is xDeviceCharacteristics();
    shm_map is xShmMap(page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void);
    shm_lock is xShmLock(offset: c_int, count: c_int, flags: c_int);
    shm_unmap is xShmUnmap(deletes: c_int);
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: the file is open.
    unsafe {
        let (file, methods) = system(file);
        if let Some(barrier) = methods.xShmBarrier {
            barrier(file);
        }
    }
}
