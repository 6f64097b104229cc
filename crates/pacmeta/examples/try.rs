use pacmeta::{config::Config, experiment::*};
fn main() {
    for (name, text) in [
        ("pacmaml30", "[data]\nexamples=30\n[method]\nname='pacmaml'\nbeta_per_example=100\nalpha_over_beta=0.2"),
        ("pacoh30", "[data]\nexamples=30\n[method]\nname='pacoh'\nbeta_per_example=30"),
        ("pacoh5", "[data]\nexamples=5\n[method]\nname='pacoh'\nbeta_per_example=100"),
        ("maml30", "[data]\nexamples=30\n[method]\nname='maml'\nrate=0.02"),
        ("reptile30", "[data]\nexamples=30\n[method]\nname='reptile'"),
        ("multi", "[data]\nexamples=30\n[method]\nname='multi-task'"),
        ("recipe", "[data]\nexamples=5\nquery=50\n[method]\nname='pacoh-map'\n[training]\niterations=12000"),
        ("auto", "[data]\nexamples=30\n[method]\nname='pacmaml'"),
    ] {
        let s = std::time::Instant::now();
        let e = Experiment::prepare(Config::parse("x", text, &[]).unwrap()).unwrap();
        let c = e.choose_temperatures(&mut Silent).unwrap();
        let m = e.train(&c, &mut Silent).unwrap();
        println!("{name} {:?} {:?}", s.elapsed(), c.explanation());
        for (n, r) in e.scores(&m).unwrap() { println!("   {n:30} rmse {:.4}±{:.4} ll {:.3} cal {:.3} cov {:.3}", r.rmse, r.rmse_standard_error.unwrap(), r.log_likelihood, r.calibration_error, r.coverage95); }
    }
}
