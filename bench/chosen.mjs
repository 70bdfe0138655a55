// Which jobs of a bench are run.

/** For parseArgs: what the benches of many jobs are told. */
export const JOB_OPTIONS = {
  quick: { type: 'boolean', default: false },
  sample: { type: 'boolean', default: false },
  only: { type: 'string', multiple: true },
}

/**
 * All jobs; or with `only` those whose name has all words of one of these; or with `sample` the
 * first of each kind. Ends the process where no job has the words, unless they are `besides`.
 */
export function chosenJobs(jobs, { only, sample }, besides) {
  const named =
    only === undefined ? jobs : jobs.filter(({ name }) => only.some((words) => words.split(' ').every((word) => name.includes(word))))
  if (named.length === 0 && !only.includes(besides)) {
    console.error(`--only ${only.join(' ')}: no such job. They are:\n${jobs.map(({ name }) => name).join('\n')}`)
    process.exit(1)
  }
  return sample ? named.filter((job, k) => named.findIndex((other) => kindOf(other) === kindOf(job)) === k) : named
}

/** What is measured in the same way. */
function kindOf({ part, growth }) {
  return `${part} ${growth}`
}
