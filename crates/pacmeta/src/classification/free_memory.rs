//! The memory that a run may take.

use std::path::Path;

/// Part of the free memory that a run may take.
pub(crate) const ALLOWED: f64 = 0.9;

/// The bytes that a run may take, where the system says what is free.
pub fn allowed_memory() -> Option<f64> {
    free_memory().map(|free| ALLOWED * free)
}

/// Free memory in bytes, where the system says so: that of the machine, or what the limit of a job or container leaves.
pub fn free_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0;
    let limits = [left_of_limit(), left_of_addresses()];
    Some(limits.into_iter().flatten().fold(free, f64::min))
}

/// What the limit of this process's addresses (`ulimit -v`, which some queues of jobs set) leaves, if there is one.
fn left_of_addresses() -> Option<f64> {
    let of_process = |name: &str| std::fs::read_to_string(Path::new("/proc/self").join(name)).ok();
    left_of_address_limit(&of_process("limits")?, &of_process("statm")?)
}

/// The same by `/proc/self/limits` and `/proc/self/statm`, whose first number is the size in pages of 4 KiB.
fn left_of_address_limit(limits: &str, sizes: &str) -> Option<f64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit = limit.split_whitespace().next()?.parse::<f64>().ok()?;
    let used = sizes.split_whitespace().next()?.parse::<f64>().ok()? * 4096.0;
    Some((limit - used).max(0.0))
}

/// What the memory limits of this process's control groups (version 2) leave, if there are any.
fn left_of_limit() -> Option<f64> {
    left_in_groups(Path::new("/sys/fs/cgroup"), &std::fs::read_to_string("/proc/self/cgroup").ok()?)
}

/// The same for groups below a folder; `own` is the list of a process's groups.
fn left_in_groups(root: &Path, own: &str) -> Option<f64> {
    let own = root.join(own.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let read = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let left = |folder: &Path| {
        let number = |name: &str| read(folder, name)?.trim().parse::<f64>().ok();
        let statistics = read(folder, "memory.stat").unwrap_or_default();
        let part = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok();
            statistics.lines().find_map(value).unwrap_or(0.0)
        };
        // Cached files make room when others need it; files in memory do not.
        Some(number("memory.max")? - number("memory.current")? + part("file") - part("shmem"))
    };
    let folders = own.ancestors().take_while(|folder| folder.starts_with(root));
    folders.filter_map(left).min_by(f64::total_cmp).map(|left| left.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_addresses_counts() {
        let limits = |soft: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax cpu time  unlimited  unlimited  seconds\nMax address space  {soft}  unlimited  bytes\n"
            )
        };
        assert_eq!(left_of_address_limit(&limits("unlimited"), "25 3 1"), None);
        assert_eq!(left_of_address_limit(&limits("1024000"), "25 3 1"), Some(921_600.0));
        assert_eq!(left_of_address_limit(&limits("4096"), "25 3 1"), Some(0.0));
    }

    #[test]
    fn the_narrowest_limit_above_a_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |folder: &str, name: &str, text: &str| {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
            std::fs::write(root.path().join(folder).join(name), text).unwrap();
        };
        let left = |own: &str| left_in_groups(root.path(), own);
        assert_eq!(left("0::/job/step\n"), None);
        for (folder, limit) in [("job", "8000\n"), ("job/step", "max\n")] {
            write(folder, "memory.max", limit);
            write(folder, "memory.current", "5000\n");
        }
        assert_eq!(left("4:memory:/old\n0::/job/step\n"), Some(3000.0));
        write("job", "memory.stat", "anon 4000\nfile 900\nshmem 200\n");
        assert_eq!(left("0::/job/step\n"), Some(3700.0));
        write("job/step", "memory.max", "5100\n");
        assert_eq!(left("0::/job/step\n"), Some(100.0));
        assert_eq!(left("4:memory:/old\n"), None);
    }
}
