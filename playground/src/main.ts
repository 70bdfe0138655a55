/**
 * One script for both threads: the page, and the worker in which simulations run. They share the
 * library, which is most of it, and a worker that is the same file can never be of another version
 * than its page.
 */
import './style/page.css'
import './style/playground.css'
import './style/service.css'
import { startPage } from './page.ts'
import { startWorker } from './simulation/worker.ts'

if (typeof document === 'undefined') startWorker()
else startPage((document.currentScript as HTMLScriptElement).src)
