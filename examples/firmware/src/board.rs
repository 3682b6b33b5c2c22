//! The machine: entry, heap, and the host's console through semihosting. The only unsafe code, since nothing is below.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr::{self, addr_of, addr_of_mut};

unsafe extern "C" {
    // Places, not values: the memory map defines them.
    static mut data_start: u32;
    static data_end: u32;
    static data_load: u32;
    static mut bss_start: u32;
    static bss_end: u32;
    static flash_used: u32;
    static stack_top: u32;
}

/// What stands in the vector table after the stack pointer: reset, then NMI and the faults.
#[unsafe(link_section = ".vectors")]
#[used]
static VECTORS: [extern "C" fn() -> !; 6] = [reset, fault, fault, fault, fault, fault];

extern "C" fn fault() -> ! {
    print("the processor reported a fault\n");
    exit(3)
}

/// Where the processor starts.
#[unsafe(no_mangle)]
extern "C" fn reset() -> ! {
    const CPACR: *mut u32 = 0xe000_ed88 as *mut u32;
    // SAFETY: nothing else runs. The floating-point unit has to be on before a function saves its registers, and the
    // statics have to hold their first values before Rust code reads one; the places come from the memory map.
    unsafe {
        CPACR.write_volatile(CPACR.read_volatile() | 0xf << 20);
        asm!("dsb", "isb");
        let len = addr_of!(data_end) as usize - addr_of!(data_start) as usize;
        ptr::copy_nonoverlapping(addr_of!(data_load).cast::<u8>(), addr_of_mut!(data_start).cast::<u8>(), len);
        let len = addr_of!(bss_end) as usize - addr_of!(bss_start) as usize;
        ptr::write_bytes(addr_of_mut!(bss_start).cast::<u8>(), 0, len);
    }
    paint_stack();
    crate::main();
    exit(0)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    print("panic at ");
    if let Some(place) = info.location() {
        print(place.file());
        print(" line ");
        print_number(place.line() as usize);
    }
    print("\n");
    exit(1)
}

// ---- the host's side of semihosting ----

fn host(operation: u32, argument: *const u8) {
    // SAFETY: a semihosting call as Arm defines it (BKPT 0xAB); it changes r0 and nothing else that Rust knows of.
    unsafe { asm!("bkpt 0xab", inout("r0") operation => _, in("r1") argument) }
}

/// Prints on the host's console.
pub(crate) fn print(text: &str) {
    for byte in text.bytes() {
        // SYS_WRITEC
        host(3, &raw const byte);
    }
}

pub(crate) fn print_number(number: usize) {
    if number >= 10 {
        print_number(number / 10);
    }
    let digit = b'0' + (number % 10) as u8;
    host(3, &raw const digit);
}

/// Ends the emulator with this code.
pub(crate) fn exit(code: u32) -> ! {
    // SYS_EXIT_EXTENDED with ADP_Stopped_ApplicationExit
    let block = [0x2_0026, code];
    host(0x20, block.as_ptr().cast());
    loop {}
}

// ---- what is used ----

/// Bytes of code and constants.
pub(crate) fn flash() -> usize {
    addr_of!(flash_used) as usize
}

const PAINT: u32 = 0x5afe_c0de;

/// The words between the statics and the stack as it is now.
fn free_words() -> core::ops::Range<usize> {
    let here = 0u32;
    addr_of!(bss_end) as usize..(&raw const here as usize - 256) & !3
}

fn paint_stack() {
    for word in free_words().step_by(4) {
        // SAFETY: below the stack, with room for this function's callees, and above the statics: nobody's memory.
        unsafe { (word as *mut u32).write_volatile(PAINT) }
    }
}

/// The most bytes of stack that were in use.
pub(crate) fn stack_peak() -> usize {
    // SAFETY: reads of the words that `paint_stack` wrote.
    let untouched = |word: &usize| unsafe { (*word as *const u32).read_volatile() } == PAINT;
    let lowest = free_words().step_by(4).find(|word| !untouched(word)).unwrap_or(free_words().end);
    addr_of!(stack_top) as usize - lowest
}

// ---- the heap ----

/// What issue 3 allows.
const HEAP: usize = 16 << 10;
/// Everything is handed out in pieces of this size.
const UNIT: usize = 16;
const UNITS: usize = HEAP / UNIT;

/// Reached through pointers only.
#[repr(align(16))]
struct Memory(#[expect(dead_code)] [u8; HEAP]);

/// First fit over a map of which units are taken. Slow, small, and never fragmented by its own book-keeping.
struct Heap {
    memory: UnsafeCell<Memory>,
    taken: UnsafeCell<[bool; UNITS]>,
    in_use: UnsafeCell<(usize, usize)>,
}

// SAFETY: there is one thread and no interrupt.
unsafe impl Sync for Heap {}

#[global_allocator]
static ALLOCATOR: Heap = Heap {
    memory: UnsafeCell::new(Memory([0; HEAP])),
    taken: UnsafeCell::new([false; UNITS]),
    in_use: UnsafeCell::new((0, 0)),
};

impl Heap {
    fn count(&self, units: isize) {
        // SAFETY: one thread, and no reference leaves this function.
        let (now, peak) = unsafe { &mut *self.in_use.get() };
        *now = now.wrapping_add_signed(units * UNIT as isize);
        *peak = (*peak).max(*now);
    }
}

// SAFETY: pieces are whole units of one array aligned to a unit, handed out only where the map says that none of them is
// taken, and marked as taken until they come back. Larger alignments than a unit are refused.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let need = layout.size().div_ceil(UNIT);
        // SAFETY: one thread, and no reference leaves this function.
        let taken = unsafe { &mut *self.taken.get() };
        let mut run = 0;
        for unit in 0..UNITS {
            run = if taken[unit] { 0 } else { run + 1 };
            if run == need && layout.align() <= UNIT {
                let first = unit + 1 - need;
                taken[first..=unit].fill(true);
                self.count(need as isize);
                // SAFETY: inside the array.
                return unsafe { self.memory.get().cast::<u8>().add(first * UNIT) };
            }
        }
        ptr::null_mut()
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        let first = (piece as usize - self.memory.get() as usize) / UNIT;
        let units = layout.size().div_ceil(UNIT);
        // SAFETY: one thread, and no reference leaves this function.
        let taken = unsafe { &mut *self.taken.get() };
        taken[first..first + units].fill(false);
        self.count(-(units as isize));
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let first = (piece as usize - self.memory.get() as usize) / UNIT;
        let (old, new) = (layout.size().div_ceil(UNIT), size.div_ceil(UNIT));
        {
            // SAFETY: one thread, and the reference ends here.
            let taken = unsafe { &mut *self.taken.get() };
            if new <= old {
                taken[first + new..first + old].fill(false);
                self.count(new as isize - old as isize);
                return piece;
            }
            // In place where the units behind are free.
            if first + new <= UNITS && !taken[first + old..first + new].contains(&true) {
                taken[first + old..first + new].fill(true);
                self.count((new - old) as isize);
                return piece;
            }
        }
        // SAFETY: the caller's promises about `piece` and `layout`; the new piece is larger than the old one.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(piece, moved, layout.size());
                self.dealloc(piece, layout);
            }
            moved
        }
    }
}

/// The most bytes of heap that were in use at once, since the last call.
pub(crate) fn heap_peak() -> usize {
    // SAFETY: one thread, and no reference leaves this function.
    let (now, peak) = unsafe { &mut *ALLOCATOR.in_use.get() };
    core::mem::replace(peak, *now)
}
