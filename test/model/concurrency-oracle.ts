/**
 * The slow, obvious version of `concurrency`: a list of who holds what until when, and of who
 * stands in line. It shares no formula with the code.
 */

export interface Numbers {
  readonly max: number
  /** Infinity for none. */
  readonly leaseUs: number
}

export interface Question {
  readonly op: 'take' | 'ask' | 'give' | 'renew' | 'line' | 'forget'
  readonly numbers: Numbers
  readonly cost: number
  /** Of what is given back. */
  readonly token?: number
  /** Of what is renewed. */
  readonly tokens?: readonly number[]
  /** In line. */
  readonly place?: number
}

export interface Told {
  readonly outcome: string
  readonly remaining: number
  readonly retryUs: number
  readonly resetUs: number
  readonly enteredUs: number
  readonly given: number
}

interface Entry {
  readonly token: number
  /** Of a lease: how many permits. */
  count: number
  /** Of a caller in line: the capacity that it decides by. */
  capacity: number
  expiresUs: number
}

const MOST_LEASES = 1_000
const MOST_IN_LINE = 64
const LINE_US = 1_000_000

export class ConcurrencyOracle {
  entries: Entry[] = []
  first = 0
  last = 0
  atUs = 0
  /** The numbers that were charged by last. */
  own: Numbers = { max: 0, leaseUs: 0 }

  decide(question: Question, nowUs: number): Told | undefined {
    const { op, numbers, cost } = question
    if (op === 'forget') {
      this.#startAnew()
      return undefined
    }
    if (this.last === 0) this.own = numbers
    this.#repair(nowUs)
    if (op === 'give') return this.#give(question, nowUs)
    if (op === 'renew') return this.#renew(question, nowUs)
    const place = this.#line(nowUs).find(({ token }) => token === question.place)
    if (cost > numbers.max) {
      if (op === 'line' && place !== undefined) this.#remove(place, nowUs)
      return this.#told(question, nowUs, { outcome: 'impossible', retryUs: Number.POSITIVE_INFINITY })
    }
    const retryUs = cost === 0 ? 0 : this.#freeInUs(numbers.max - cost, nowUs, place?.token)
    if (retryUs > 0 && op === 'line') return this.#stand(question, nowUs, place, retryUs)
    if (retryUs > 0) return this.#told(question, nowUs, { outcome: 'limited', retryUs })
    if (op === 'ask' || (cost === 0 && op === 'take')) return this.#told(question, nowUs, {})
    if (place !== undefined) this.#remove(place, nowUs)
    if (cost === 0) return this.#told(question, nowUs, {})
    const token = this.#enter(numbers, nowUs, { count: cost, capacity: 0, expiresUs: numbers.leaseUs })
    this.own = numbers
    return this.#told(question, nowUs, { enteredUs: token })
  }

  /** What is held and who waits, by the time that counts. */
  live(nowUs: number): readonly Entry[] {
    const atUs = Math.max(this.atUs, nowUs)
    return this.entries.filter(({ expiresUs }) => expiresUs > atUs)
  }

  isIdle(nowUs: number): boolean {
    return this.#resetUs(nowUs) === 0
  }

  #give(question: Question, nowUs: number): Told {
    const { cost, token } = question
    const entry = this.live(nowUs).find((each) => each.token === token)
    if (cost === 0) return this.#told(question, nowUs, {})
    if (entry === undefined) return this.#told(question, nowUs, { outcome: 'limited' })
    const given = Math.min(entry.count, cost)
    entry.count -= given
    if (entry.count === 0) this.#remove(entry, nowUs)
    this.atUs = Math.max(this.atUs, nowUs)
    return this.#told(question, nowUs, { given })
  }

  #renew(question: Question, nowUs: number): Told {
    const { numbers, cost, tokens = [] } = question
    const atUs = Math.max(this.atUs, nowUs)
    const held = this.live(nowUs).filter(({ token, count }) => count > 0 && tokens.includes(token))
    for (const entry of held) entry.expiresUs = Math.max(entry.expiresUs, atUs + numbers.leaseUs)
    let given = held.length
    const [token] = tokens as [number]
    if (given === 0 && cost > 0 && (this.isIdle(nowUs) || token < this.first || token > this.last)) {
      this.#startAnewIfIdle(nowUs)
      if (this.last === 0) {
        this.first = Math.max(atUs, token + 1)
        this.last = atUs
      }
      this.last = Math.max(this.last, token)
      this.entries.push({ token, count: cost, capacity: 0, expiresUs: atUs + numbers.leaseUs })
      given = 1
    }
    if (given > 0) this.atUs = atUs
    return this.#told(question, nowUs, { outcome: given === tokens.length ? 'allowed' : 'limited', given })
  }

  #stand(question: Question, nowUs: number, place: Entry | undefined, retryUs: number): Told {
    const { numbers } = question
    const lineUs = numbers.leaseUs === Number.POSITIVE_INFINITY ? numbers.leaseUs : LINE_US
    if (place !== undefined) {
      this.atUs = Math.max(this.atUs, nowUs)
      place.capacity = numbers.max
      place.expiresUs = Math.max(place.expiresUs, this.atUs + lineUs)
      return this.#told(question, nowUs, { outcome: 'limited', retryUs, given: 1 })
    }
    if (this.#line(nowUs).length >= MOST_IN_LINE) return this.#told(question, nowUs, { outcome: 'limited', retryUs, given: -1 })
    const token = this.#enter(numbers, nowUs, { count: 0, capacity: numbers.max, expiresUs: lineUs })
    // After a reset and a step back of the clock the new place may have the number of the old one:
    // then it is the same.
    if (token === question.place) return this.#told(question, nowUs, { outcome: 'limited', retryUs, given: 1 })
    return this.#told(question, nowUs, { outcome: 'limited', retryUs, enteredUs: token })
  }

  /** `expiresUs` of the entry counts from now. */
  #enter(numbers: Numbers, nowUs: number, { count, capacity, expiresUs }: Omit<Entry, 'token'>): number {
    this.#startAnewIfIdle(nowUs)
    if (this.last === 0) this.own = numbers
    this.atUs = Math.max(this.atUs, nowUs)
    this.entries = [...this.live(nowUs)]
    const token = Math.max(this.last + 1, this.atUs)
    if (this.last === 0) this.first = token
    this.last = token
    this.entries.push({ token, count, capacity, expiresUs: this.atUs + expiresUs })
    return token
  }

  #remove(entry: Entry, nowUs: number): void {
    this.entries = this.entries.filter((each) => each !== entry)
    this.atUs = Math.max(this.atUs, nowUs)
  }

  #line(nowUs: number): readonly Entry[] {
    return this.live(nowUs).filter(({ capacity }) => capacity > 0)
  }

  /** At each time at which something expires: does it fit then? */
  #freeInUs(room: number, nowUs: number, place: number | undefined): number {
    const before = (token: number) => place === undefined || token < place
    const fitsAt = (us: number) => {
      const live = this.live(us)
      const leases = live.filter(({ count }) => count > 0)
      const total = leases.reduce((sum, { count }) => sum + count, 0)
      const most = this.own.leaseUs === Number.POSITIVE_INFINITY ? 100_000 : MOST_LEASES
      return total <= room && leases.length < most && !live.some(({ capacity, token }) => capacity > room && before(token))
    }
    const times = [nowUs, ...this.entries.map(({ expiresUs }) => expiresUs)].filter((us) => us >= nowUs).sort((a, b) => a - b)
    return (times.find(fitsAt) ?? Number.POSITIVE_INFINITY) - nowUs
  }

  #resetUs(nowUs: number): number {
    const sinceUs = this.last === 0 ? 0 : Math.min(this.last + 1, this.atUs + windowUs(this.own))
    return Math.max(0, sinceUs - nowUs, ...this.live(nowUs).map(({ expiresUs }) => expiresUs - nowUs))
  }

  /** Every lease has as long to go as it had when the state was written. */
  #repair(nowUs: number): void {
    const backUs = this.atUs - nowUs
    if (this.last === 0 || backUs <= windowUs(this.own)) return
    this.entries = this.live(nowUs).map((entry) => ({ ...entry, expiresUs: entry.expiresUs - backUs }))
    this.atUs = nowUs
  }

  #startAnewIfIdle(nowUs: number): void {
    if (this.isIdle(nowUs)) this.#startAnew()
  }

  #startAnew(): void {
    this.entries = []
    this.first = 0
    this.last = 0
    this.atUs = 0
  }

  #told({ numbers }: Question, nowUs: number, told: Partial<Told>): Told {
    const used = this.live(nowUs).reduce((sum, { count }) => sum + count, 0)
    const remaining = Math.max(0, numbers.max - used)
    return { outcome: 'allowed', remaining, retryUs: 0, resetUs: this.#resetUs(nowUs), enteredUs: nowUs, given: 0, ...told }
  }
}

function windowUs({ leaseUs }: Numbers): number {
  return leaseUs === Number.POSITIVE_INFINITY ? 36_525 * 86_400_000_000 : leaseUs
}
