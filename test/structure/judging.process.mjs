// A process that judges one test, as the mutation check does, and tells how it went.
import { Worker } from '../../proof/worker.mjs'

const [root, path, limitMs] = process.argv.slice(2)
process.once('SIGINT', () => process.exit(1))
const worker = new Worker(root)
const { status } = await worker.judge({ path, traces: 1 }, Number(limitMs))
process.send({ status })
// It goes on: the next mutant is to come.
setInterval(() => undefined, 1_000)
