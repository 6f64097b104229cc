fn main() {
    for pacmaml in [false, true] {
        for m in [5, 10, 30, 50, 100] {
            let t = pacmeta::benchmark::time_gp(pacmaml, m, std::time::Duration::from_secs(1)).unwrap();
            println!(
                "{} {} median {:.1} min {:.1} {}",
                t.method, m, t.microseconds_per_iteration, t.fastest_microseconds, t.instructions
            );
        }
    }
}
