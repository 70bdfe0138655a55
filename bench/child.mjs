// A process of its own for one job: what it measures is compiled for that job only. Started by
// run.mjs with the job as its argument.
const job = JSON.parse(process.argv[2])
const { default: measure } = await import(`./${job.part}.mjs`)
const result = await measure(job)
process.send(result, () => process.exit())
