//! Scripts that hand a plan to a scheduler.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::indices::{Chunks, array_expression, limited};

/// Who starts the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launcher {
    /// An array of Slurm.
    #[default]
    Slurm,
    /// GNU parallel on one machine, or inside one job.
    Parallel,
}

/// What a script says besides the plan.
#[derive(Debug, Clone)]
pub struct ScriptOptions {
    /// Who starts the jobs.
    pub launcher: Launcher,
    /// The program.
    pub program: PathBuf,
    /// The plan.
    pub plan: PathBuf,
    /// The folder of results.
    pub results: PathBuf,
    /// The name of the job.
    pub name: String,
    /// The limit of a job's time, as Slurm takes it.
    pub time: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The most jobs at the same time.
    pub max_running: Option<usize>,
    /// Processors of a job.
    pub processors: usize,
}

/// The most indices of an array of Slurm unless its configuration says otherwise (`MaxArraySize` is 1001).
pub const USUAL_ARRAY: usize = 1001;

/// Slurm sends its signal so many seconds ahead of the limit of time, by its manual up to a minute earlier.
const LEAD_SECONDS: u32 = 120;

/// A shorter limit of time would leave no time to train before the signal.
pub const SHORTEST_MINUTES: u64 = 5;

const SLURM_LOG: (&str, &str) = ("slurm-", ".log");
const PARALLEL_LOG: &str = "parallel.log";

/// Whether a file of the folder of results is a log that a script leaves there.
pub(super) fn is_log(name: &str) -> bool {
    name == PARALLEL_LOG || (name.starts_with(SLURM_LOG.0) && name.ends_with(SLURM_LOG.1))
}

/// The script.
pub fn script(options: &ScriptOptions, chunks: &Chunks) -> String {
    match options.launcher {
        Launcher::Slurm => slurm(options, chunks),
        Launcher::Parallel => parallel(options, chunks),
    }
}

/// The plan, its results and how it is packed, as every command takes them.
fn planned(options: &ScriptOptions, chunks: &Chunks) -> String {
    let mut text = format!(
        "{} --results {}",
        quoted(&options.plan.display().to_string()),
        quoted(&options.results.display().to_string())
    );
    if chunks.size() > 1 {
        let _ = write!(text, " --chunk {}", chunks.size());
    }
    text
}

fn jobs_in_words(chunks: &Chunks) -> String {
    match chunks.jobs() {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}

fn head(options: &ScriptOptions) -> String {
    let program = quoted(&options.program.display().to_string());
    format!("pacmeta=${{PACMETA:-{program}}}\n")
}

fn slurm(options: &ScriptOptions, chunks: &Chunks) -> String {
    let last = chunks.jobs().saturating_sub(1);
    let kept = options.max_running.map(|most| format!(" --max-running {most}")).unwrap_or_default();
    let mut text = format!(
        "#!/bin/bash\n\
         # {jobs} of {plan}. What is missing later:\n\
         #   missing=$(pacmeta sweep status {planned}{kept} --array)\n\
         #   [ -z \"$missing\" ] || sbatch --array=\"$missing\" this-script\n",
        jobs = jobs_in_words(chunks),
        plan = options.plan.display(),
        planned = planned(options, chunks),
    );
    if chunks.jobs() > USUAL_ARRAY {
        let _ = writeln!(
            text,
            "# Slurm takes arrays of up to {USUAL_ARRAY} indices unless MaxArraySize is larger; --chunk packs several models into a job."
        );
    }
    let mut set = |option: &str, value: &str| _ = writeln!(text, "#SBATCH --{option}={value}");
    set("job-name", &options.name);
    set("array", &limited(&array_expression(&(0..=last).collect::<Vec<_>>()), options.max_running));
    options.time.iter().for_each(|time| set("time", time));
    options.partition.iter().for_each(|partition| set("partition", partition));
    set("ntasks", "1");
    set("cpus-per-task", &options.processors.to_string());
    let (before, after) = SLURM_LOG;
    // Slurm puts numbers in the place of %A and %a, and one % in that of two.
    let folder = options.results.display().to_string().replace('%', "%%");
    set("output", &quoted(&format!("{folder}/{before}%A_%a{after}")));
    set("open-mode", "append");
    set("signal", &format!("B:USR1@{LEAD_SECONDS}"));
    text.push_str("#SBATCH --requeue\n\n");
    text.push_str(&head(options));
    let _ = write!(
        text,
        r#"
# Two minutes before the limit of time Slurm sends SIGUSR1, at a preemption or scancel SIGTERM. Either makes pacmeta
# write a checkpoint and end with 130. After the first the job is put back into the queue; after a preemption Slurm does
# that itself; after scancel nobody does.
again= signalled=yes code=1
"$pacmeta" sweep run {planned} --threads "$SLURM_CPUS_PER_TASK" &
child=$!
trap 'signalled=yes; again=yes; kill -USR1 "$child"' USR1
trap 'signalled=yes; kill -TERM "$child"' TERM
while [ -n "$signalled" ]; do
    signalled=
    wait "$child"
    ended=$?
    [ "$ended" -eq 127 ] || code=$ended
done
if [ "$code" -eq 130 ] && [ -n "$again" ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"#,
        planned = planned(options, chunks)
    );
    text
}

/// Paths are in variables: GNU parallel would put the index in the place of `{}` in them.
fn parallel(options: &ScriptOptions, chunks: &Chunks) -> String {
    let jobs = options.max_running.map(|most| format!(" --jobs {most}")).unwrap_or_default();
    let chunk = if chunks.size() > 1 { format!(" --chunk {}", chunks.size()) } else { String::new() };
    format!(
        "#!/bin/bash\n\
         # {count} of {plan}. Run it again for what is missing: jobs that are done end at once.\n\
         # Ctrl-C gives every job a minute to write a checkpoint.\n\
         {head}plan={plan_word}\n\
         results={results}\n\
         export pacmeta plan results\n\
         seq 0 {last} | parallel{jobs} --termseq TERM,60000,KILL,25 --joblog \"$results/{PARALLEL_LOG}\" \\\n    \
         '\"$pacmeta\" sweep run \"$plan\" --results \"$results\"{chunk}' --index {{}} --threads {threads}\n",
        count = jobs_in_words(chunks),
        plan = options.plan.display(),
        head = head(options),
        plan_word = quoted(&options.plan.display().to_string()),
        results = quoted(&options.results.display().to_string()),
        last = chunks.jobs().saturating_sub(1),
        threads = options.processors,
    )
}

/// A word as a shell takes it; plain ones as they are.
fn quoted(word: &str) -> String {
    let plain =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
