use std::time::Instant;
fn time(name: &str, n: usize, mut f: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..30 {
        let s = Instant::now();
        for _ in 0..n {
            f();
        }
        best = best.min(s.elapsed().as_secs_f64() / n as f64);
    }
    println!("{name}: {:.2} us", best * 1e6);
}
fn main() {
    use pacmeta_tensor::mlp::*;
    use pacmeta_tensor::simd::product::*;
    use pacmeta_tensor::simd::*;
    let arch = pulp::Arch::new();
    // fma peak
    let mut v: Vec<f64> = (0..500 * 32).map(|i| (i as f64 * 0.37).sin() * 2.0).collect();
    time("tanh 16000", 20, || elementary::tanh_in_place(arch, &mut v));
    let w = vec![0.01; 32 * 32];
    let b = vec![0.0; 32];
    let h = vec![0.5; 60 * 32];
    let mut out = vec![0.0; 60 * 32];
    time("product 60x32x32", 500, || {
        product(
            arch,
            Sizes { rows: 60, columns: 32, depth: 32 },
            Start::Row(&b),
            Left { values: &h, depth_stride: 1, row_stride: 32 },
            (&w, 32),
            (&mut out, 32),
        )
    });
    let mut g = vec![0.0; 32 * 32];
    time("wgrad 32x32 depth 60", 500, || {
        product(
            arch,
            Sizes { rows: 32, columns: 32, depth: 60 },
            Start::Plus,
            Left { values: &h, depth_stride: 32, row_stride: 1 },
            (&out, 32),
            (&mut g, 32),
        )
    });
    for points in [25, 500] {
        let mut p = Perceptron::new(&[1, 32, 32, 2]);
        let params: Vec<f64> =
            (0..parameter_count(&[1, 32, 32, 2])).map(|i| (i as f64).sin() * 0.2).collect();
        let x: Vec<f64> = (0..points).map(|i| i as f64 / points as f64).collect();
        time("load", 100, || p.load(&params));
        time(&format!("forward {points}"), 20, || {
            p.forward(&x);
        });
        let og = vec![0.1; points * 8];
        let mut gr = vec![0.0; params.len()];
        time(&format!("backward {points}"), 20, || {
            p.backward(&og, &mut gr);
        });
    }
    let mut opt = pacmeta::training::Optimiser::new(2339, 1e-3, 0.0);
    let mut pp = vec![0.1; 2339];
    let gg = vec![0.2; 2339];
    time("adam", 100, || opt.step(&mut pp, &gg));
}
