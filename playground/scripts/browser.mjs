// A Chromium for tests, pictures and measurements.
import { chromium } from 'playwright-core'
import { chromiumPath } from '../../scripts/packages.mjs'

const QUIET = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export async function launchBrowser() {
  const executablePath = chromiumPath()
  if (executablePath === undefined) throw new Error('this needs a Chromium, and there is none: `npm test` installs it')
  // Without a sandbox only where there can be none: Chromium refuses to make one for root.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath, args: [...sandbox, ...QUIET] })
}
