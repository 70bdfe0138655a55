// `--only`: which jobs of a bench are run.

/** The jobs whose name has all words of one of these. All without any. Ends the process where no job has them, unless they are `besides`. */
export function chosenJobs(jobs, only, besides) {
  if (only === undefined) return jobs
  const found = jobs.filter(({ name }) => only.some((words) => words.split(' ').every((word) => name.includes(word))))
  if (found.length > 0 || only.includes(besides)) return found
  console.error(`--only ${only.join(' ')}: no such job. They are:\n${jobs.map(({ name }) => name).join('\n')}`)
  process.exit(1)
}
