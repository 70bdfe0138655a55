// One report for each tenant at a time: who asks again meanwhile is told so at once, and other
// tenants are not held up.
import { concurrency, createLimiter } from 'sluice'

const reports = createLimiter(concurrency({ max: 1 }))
let end: () => void = () => undefined

async function report(tenant: string): Promise<string> {
  const permit = reports.consume(tenant)
  if (!permit.allowed) return `${tenant}: a report is being made already`
  try {
    if (tenant === 'acme') await new Promise<void>((resolve) => (end = resolve))
    return `${tenant}: done`
  } finally {
    permit.release()
  }
}

const first = report('acme')
console.log(await report('acme'))
console.log(await report('globex'))
end()
console.log(await first)
console.log(`${reports.inflight()} under way`)

// prints:
// acme: a report is being made already
// globex: done
// acme: done
// 0 under way
