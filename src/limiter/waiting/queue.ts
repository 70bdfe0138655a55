/**
 * The waiters of one key, first come, first served. Those in front hold permits that are booked ahead and wait for their time; those
 * behind wait outside, because nothing can be booked (windows, logs) or not that far ahead. Only two of them ever have something to wait
 * for: the first of all for its time, and the first outside for its next try. So a queue needs one alarm.
 *
 * It knows no store. It asks through its desk, which may answer at once or later.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Alarm, Alarms } from '../../clock/alarms.ts'
import { type Charge, chargesOf } from '../../stores/settlement.ts'
import { allAllowed, type Part } from '../../stores/store.ts'
import { Book } from './book.ts'
import { type Claim, claimOf, HeldUp, isClaimable, renewalUs } from './claim.ts'
import { Departures } from './departures.ts'
import type { Desk, Verb } from './desk.ts'
import { type Booked, bookedOf } from './holding.ts'
import { Horizon, paceUs } from './horizon.ts'
import { addCosts, Line } from './line.ts'
import type { Refusal } from './wait-error.ts'
import { type Answer, mayBook, type Question, type Waiter } from './waiter.ts'

/** How many of those outside ask a slow store at once: more of them where the horizon bounds them too. */
const MOST_AT_ONCE = 32
const MOST_BOOKING = 128

export class Queue {
  readonly #desk: Desk
  readonly #plan: string | undefined
  readonly #alarms: Alarms
  readonly #line = new Line()
  readonly #book: Book
  readonly #horizon: Horizon
  readonly #departures = new Departures()
  /** Answers whose permits are held for no waiter in particular, because those who were answered left: the next caller has them. */
  #spare: { readonly parts: readonly Part[]; readonly answer: Answer }[] = []
  /** What stands in the store for the first outside, so that others leave room for it. */
  #claim: Claim | undefined = undefined
  #entered = 0
  /** How often the numbers have changed. */
  #changes = 0
  /** How many takes are on their way to the store or back. */
  #onTheirWay = 0
  /** When the first outside tries again. */
  #retryAtUs = 0
  #alarm: Alarm | undefined = undefined

  /** Called when nobody waits and no answer is awaited. */
  readonly #onIdle: () => void

  /** `plan`: all of one queue are decided by the same numbers. */
  constructor(desk: Desk, plan: string | undefined, alarms: Alarms, onIdle: () => void) {
    this.#desk = desk
    this.#plan = plan
    this.#book = new Book(desk, plan)
    this.#horizon = new Horizon(desk.isShared)
    this.#alarms = alarms
    this.#onIdle = onIdle
  }

  /** How many have neither got their turn nor left. */
  get size(): number {
    return this.#line.size
  }

  /** Nobody waits any longer: if no answer is awaited, the queue can be forgotten. */
  endIfIdle(): void {
    if (this.size > 0) return
    this.#releaseSpare()
    if (this.#onTheirWay === 0) this.#onIdle()
  }

  /** Whether callers leave later than they were booked for, because the event loop stood still. */
  get isBehind(): boolean {
    return this.#departures.isBehind
  }

  enter(waiter: Waiter): void {
    waiter.number = this.#entered++
    this.#line.asking.add(waiter)
    // A timer may be late: whoever is due goes first.
    if (this.#line.length > 0) this.goOn()
    const isFull = this.#isFullFor(waiter)
    const [spare] = this.#spare
    if (spare !== undefined && waiter.canBeBehindOthers && !waiter.asksForTheSameAs(spare.parts)) this.#releaseSpare()
    if (!waiter.canBeBehindOthers || !this.#mustStandOutside(waiter)) {
      if (!this.#hasSpare(waiter, isFull)) this.#ask('take', waiter, isFull)
    } else {
      if (!isFull) waiter.notBeforeUs = this.#desk.nowUs() + this.#line.leastUs(waiter.parts)
      // Behind others nothing may be taken: the question is only whether it is worth waiting.
      if (!isFull) this.#line.standOutside(waiter)
      if (isFull || waiter.deadlineUs < Number.POSITIVE_INFINITY) this.#ask('ask', waiter, isFull)
    }
    this.goOn()
  }

  /** Whether somebody is before it whom it must not overtake, or whose permits are being given back. */
  #mustStandOutside(waiter: Waiter): boolean {
    if (this.#line.firstOutside !== undefined || this.#book.owes) return true
    if (waiter.mayBook) return this.#spare.length === 0 && this.#opensUs(waiter) > this.#desk.nowUs()
    if (this.#onTheirWay === 0) return false
    // What cannot be booked could be refused to the one before, who asks for more, and granted to this one.
    for (const other of this.#line.asking) if (!waiter.asksForTheSameAs(other.parts)) return true
    return false
  }

  /** Takes a waiter out who does not want to wait any longer. What it held moves everybody behind it up: `goOn` when all have left. */
  leave(waiter: Waiter): void {
    const { state } = waiter
    waiter.state = 'gone'
    const before = state === 'booked' && this.#standsFast ? this.#line.permitsBefore(waiter) : undefined
    this.#takeOut(waiter)
    if (state !== 'booked') return
    if (before === undefined) {
      this.#handOn(waiter.parts, waiter.answer as Answer)
      return
    }
    this.#retryAtUs = 0
    this.#book.giveUpHole(waiter.parts, before)
  }

  /**
   * What a waiter held who left, or who was answered after it had left, goes to the first who holds nothing. Where others may have booked behind it,
   * it is kept for the next caller as long as anybody waits: given back, it would be lost.
   */
  #handOn(parts: readonly Part[], answer: Answer): void {
    const isLost = this.#horizon.isShared && !this.#line.isMixed && mayBook(parts)
    if (!isLost || this.size === 0) {
      this.#release(parts, answer)
      return
    }
    const heir = this.#line.firstWithout(parts, this.#book.dueFromEndUs(parts, this.#spare.length), true)
    if (heir !== undefined) this.#inherit(heir, answer)
    else if (this.#line.allAskFor(parts)) this.#spare.push({ parts, answer })
    else this.#release(parts, answer)
  }

  /** Whether a waiter can have what another left: then it has it. */
  #hasSpare(waiter: Waiter, isFull: boolean): boolean {
    const spare = this.#spare.at(-1)
    if (spare === undefined || isFull) return false
    if (!waiter.asksForTheSameAs(spare.parts)) return false
    if (this.#book.dueFromEndUs(spare.parts, this.#spare.length - 1) > waiter.deadlineUs) return false
    this.#spare.pop()
    this.#inherit(waiter, spare.answer)
    return true
  }

  #releaseSpare(): void {
    for (const { parts } of this.#spare.splice(0)) this.#releaseBooked(parts)
  }

  #inherit(heir: Waiter, answer: Answer): void {
    heir.answer = answer
    this.#line.standBooked(heir)
  }

  /**
   * A reservation that was made beside the queue is given up: like a waiter who leaves, it hands its permits to those who wait, and the latest are
   * given back. False if nobody can use them: then it is cancelled by itself.
   */
  takeOver(parts: readonly Part[], booked: readonly (Booked | undefined)[]): boolean {
    const { first, isMixed } = this.#line
    if (first?.state !== 'booked' || !first.mayBook) return false
    if (parts.some(({ rule }, k) => rule.numbers !== first.parts[k]?.rule.numbers)) return false
    const isOneOfThem = !isMixed && first.asksForTheSameAs(parts)
    if (!isOneOfThem && !this.#book.isLedBy(booked)) return false
    this.#book.add(booked)
    this.#releaseBooked(parts)
    this.goOn()
    return true
  }

  /**
   * Whether nobody may move up. Between what is held here lie bookings of others, and with different costs a waiter would get permits from before
   * and behind them: too many at one time. A hole is lost then.
   */
  get #standsFast(): boolean {
    // What is on its way may lie behind bookings of others, too.
    const mayGetGaps = this.#horizon.isShared && this.#onTheirWay > 0
    return this.#line.isMixed && (this.#book.hasGaps || mayGetGaps)
  }

  /** Something may have become free: whoever is first outside tries again. */
  tryAgain(): void {
    this.#retryAtUs = 0
    this.goOn()
  }

  /** Permits that were in use before all bookings were given back, so many of each limit: the booked ones move up. */
  moveUp(costs: readonly number[]): void {
    this.#book.moveUp(costs)
    this.tryAgain()
  }

  /** The key was forgotten, and with it what was booked: everybody asks anew, in order. */
  startAnew(): void {
    this.#book.forget()
    this.#claim = undefined
    this.#spare = []
    this.#line.allOutside()
    this.tryAgain()
  }

  /** Gives back everything that is booked: everybody waits outside until told to try again. */
  unbook(): void {
    for (const waiter of this.#line) {
      if (waiter.state !== 'booked') continue
      if (waiter.mayBook) this.#book.giveUpLatest(waiter.parts)
      else this.#refund(waiter.parts, (waiter.answer as Answer).taken)
    }
    for (const { parts } of this.#spare.splice(0)) this.#book.giveUpLatest(parts)
    this.#giveUpClaim()
    this.#releaseLeft()
    this.#line.allOutside()
  }

  /** New numbers are in force: everybody asks anew, in order. */
  renumber(): void {
    this.#changes += 1
    for (const waiter of this.#line.all()) waiter.parts = waiter.request.renumbered(waiter.parts)
    this.tryAgain()
  }

  /** Ends every wait, and gives back what was booked. */
  close(reason: () => unknown): void {
    const waiters = this.#line.all()
    this.unbook()
    for (const waiter of waiters) {
      this.#takeOut(waiter)
      waiter.fail(reason())
    }
    this.#setAlarm()
  }

  /** Serves whoever is due, lets the first outside try if it is time, and sets the alarm for what comes next. */
  goOn(): void {
    if (this.#alarm !== undefined) this.#departures.woke(this.#alarm.atUs, this.#desk.nowUs())
    this.#serveDue()
    for (let next = this.#nextToTry(); next !== undefined; next = this.#nextToTry()) {
      this.#ask('take', next, false)
      this.#serveDue()
    }
    this.#setAlarm()
  }

  /**
   * Whoever outside may try now: the first, and while it waits for an answer those behind it, if all ask for the same, so that a store that is
   * far away is not asked for one after the other.
   */
  #nextToTry(): Waiter | undefined {
    let next = this.#line.firstOutside
    if (next === undefined || !this.#mayTry(next) || this.#triesAtUs(next) > this.#desk.nowUs()) return undefined
    const mostAtOnce = this.#line.isMixed ? 1 : next.mayBook ? MOST_BOOKING : MOST_AT_ONCE
    for (let asking = 0; asking < mostAtOnce && next !== undefined; asking++) {
      if (next.state === 'outside') return next
      next = next.behind
    }
    return undefined
  }

  /** Whether the first outside need not wait for others who asked before it: one of them may get what is for it. */
  #mayTry(first: Waiter): boolean {
    if (this.#book.owes) return false
    // Those who are asking came before, but for those who found the queue full.
    const [asking] = this.#line.asking
    if (asking !== undefined && asking.number < first.number) return false
    return first.state === 'asking' || this.#onTheirWay === 0
  }

  /** When the first outside may ask, or has its claim renewed. */
  #triesAtUs(first: Waiter): number {
    if (first.mayBook) return Math.max(this.#retryAtUs, this.#opensUs(first))
    return Math.min(this.#retryAtUs, this.#claim?.renewUs ?? Number.POSITIVE_INFINITY)
  }

  #opensUs({ parts }: Waiter): number {
    return this.#horizon.opensUs(parts, this.#book.lastDueUs, this.#onTheirWay)
  }

  #serveDue(): void {
    for (let { first } = this.#line; first?.state === 'booked'; { first } = this.#line) {
      const nowUs = this.#desk.nowUs()
      const dueUs = this.#dueUs(first)
      if (this.#departures.fromUs(dueUs) > nowUs) return
      const delayUs = this.#delayUs(first)
      this.#line.remove(first)
      if (first.mayBook) this.#book.spend(first.parts)
      this.#departures.left(dueUs, nowUs, paceUs(first.parts))
      first.serve(delayUs, nowUs)
    }
  }

  /** When the first waiter may act: when the earliest permits of every limit may. */
  #dueUs(first: Waiter): number {
    return first.mayBook ? this.#book.dueUs(first.parts) : (first.answer as Answer).bookedForUs
  }

  /** How long after the store decided that is, by the store's time. It may be less than was answered: somebody before it left. */
  #delayUs(first: Waiter): number {
    const { bookedForUs, answeredUs, taken } = first.answer as Answer
    if (!first.mayBook) return bookedForUs - answeredUs
    const [{ enteredUs }] = taken as readonly [Charge, ...Charge[]]
    return this.#book.dueAtStoreUs(first.parts) - enteredUs
  }

  #setAlarm(): void {
    const { first, firstOutside } = this.#line
    const dueUs = first?.state === 'booked' ? this.#departures.fromUs(this.#dueUs(first)) : Number.POSITIVE_INFINITY
    // While others are asking, or something is to be given back, nobody tries: that ends with an answer, not with an alarm.
    const triesAgain = firstOutside?.state === 'outside' && this.#mayTry(firstOutside)
    const nextUs = triesAgain ? Math.min(dueUs, this.#triesAtUs(firstOutside)) : dueUs
    if (this.#alarm !== undefined) {
      if (this.#alarm.place >= 0 && this.#alarm.atUs === nextUs) return
      this.#alarms.stop(this.#alarm)
    }
    this.#alarm = nextUs < Number.POSITIVE_INFINITY ? this.#alarms.set(nextUs, () => this.goOn()) : undefined
  }

  /** Asks the store, which may answer later. `mayNotWait`: takes only what can be acted on at once. */
  #ask(op: 'take' | 'ask', waiter: Waiter, mayNotWait: boolean): void {
    // In one turn with what follows, so that a store which is far away decides both at once.
    if (op === 'take' && this.#claim?.waiter === waiter) {
      this.#giveUpClaim()
      if (this.#desk.nowUs() < this.#retryAtUs) {
        this.#claimFor(waiter, this.#retryAtUs)
        return
      }
    }
    if (op === 'take') waiter.state = 'asking'
    waiter.questions += 1
    const { parts } = waiter
    const verb = { op, aheadUs: this.#aheadUs(waiter, mayNotWait), ofUs: -1 }
    const question: Question = { waiter, parts, changes: this.#changes }
    // Nobody need wait for the answer to who asks for nothing, or for too much: nothing is taken.
    const takes = op === 'take' && waiter.canBeBehindOthers ? 1 : 0
    this.#send(
      verb,
      parts,
      takes,
      (verdicts, isLate) => this.#answered(verb, question, verdicts, isLate),
      (error) => this.#failed(question, error),
    )
  }

  /** `takes`: 1 if what the answer says matters to others who ask. */
  #send(
    verb: Verb,
    parts: readonly Part[],
    takes: 0 | 1,
    onAnswer: (verdicts: readonly Verdict[], isLate: boolean) => void,
    onFailure: (error: unknown) => void,
  ): void {
    try {
      const answer = this.#desk.apply(verb, this.#plan, parts)
      if (!(answer instanceof Promise)) {
        onAnswer(answer, false)
        return
      }
      this.#onTheirWay += takes
      const later = (act: () => void) => {
        this.#onTheirWay -= takes
        act()
        if (this.#onTheirWay === 0) this.#releaseLeft()
        this.goOn()
        this.endIfIdle()
      }
      answer.then(
        (verdicts) => later(() => onAnswer(verdicts, true)),
        (error) => later(() => onFailure(error)),
      )
    } catch (error) {
      onFailure(error)
    }
  }

  /** How far ahead a waiter may book: never beyond its deadline. -1 if its limits cannot be booked ahead. */
  #aheadUs(waiter: Waiter, mayNotWait: boolean): number {
    if (!waiter.mayBook) return -1
    return mayNotWait ? 0 : Math.max(0, Math.min(this.#desk.maxAheadUs, waiter.deadlineUs - this.#desk.nowUs()))
  }

  /** `isLate`: others may have been answered since it asked. */
  #answered(verb: Verb, question: Question, verdicts: readonly Verdict[], isLate: boolean): void {
    const { waiter } = question
    waiter.questions -= 1
    const taken = verb.op === 'take' && allAllowed(verdicts)
    if (question.changes !== this.#changes) this.#outdated(question, taken, verdicts)
    else if (taken) this.#taken(question, verdicts, isLate)
    else if (waiter.state === 'asking' || waiter.state === 'outside') this.#notTaken(verb, waiter, verdicts)
    if (verb.op === 'take') this.#horizon.answered(question.parts, verdicts)
  }

  /** The numbers changed while the question was under way: what was taken under the old ones is given back, and the waiter asks anew. */
  #outdated({ waiter, parts }: Question, taken: boolean, verdicts: readonly Verdict[]): void {
    const isDegraded = verdicts[0]?.degraded === true
    if (taken && !isDegraded) this.#book.oweOutdated(waiter.request.renumbered(parts), chargesOf(parts, verdicts))
    if (waiter.isOverdue && waiter.state !== 'gone' && waiter.state !== 'booked') this.#takeOut(waiter).refuse('TIMEOUT')
    else if (waiter.state === 'asking') this.#line.standOutside(waiter)
    this.#retryAtUs = 0
  }

  #taken(question: Question, verdicts: readonly Verdict[], isLate: boolean): void {
    const { parts } = question
    const nowUs = this.#desk.nowUs()
    const delayUs = longest(verdicts, 'delayUs')
    const answer = question.waiter.read(verdicts, nowUs, nowUs + delayUs)
    const waiter = this.#recipient(question, answer, isLate)
    const mayPass = isLate || parts.some(({ cost }) => cost === 0)
    const behind =
      waiter !== undefined && delayUs > 0 && mayPass
        ? this.#whoIsBehind(waiter, answer, (verdicts[0] as Verdict).atUs + delayUs)
        : undefined
    // Who stands in for the store books nothing: what it grants is had at once.
    const isBooking = answer.taken.length > 0 && mayBook(parts)
    const mustWait = delayUs > 0 || (isBooking && this.#goesBehind(parts, nowUs, isLate, waiter?.deadlineUs))
    if ((mustWait || waiter === undefined) && mayBook(parts)) this.#book.add(bookedOf(parts, verdicts, nowUs))
    if (waiter === undefined) {
      // What was not taken from the store is not given back to it.
      if (answer.taken.length > 0) this.#handOn(parts, answer)
      return
    }
    waiter.answer = answer
    if (mustWait) this.#booked(waiter, this.#mayGoLast(waiter) ? undefined : behind)
    else this.#takeOut(waiter).serve(0, nowUs)
  }

  /** Where all ask for the same, permits that lie before those of others here are theirs, and the one that came last has the latest, if it can wait so long. */
  #mayGoLast(waiter: Waiter): boolean {
    const { lastBooked, isMixed } = this.#line
    if (isMixed || !waiter.mayBook || lastBooked === undefined) return false
    const isLater = lastBooked.number < waiter.number && waiter.asksForTheSameAs(lastBooked.parts)
    return isLater && this.#book.dueFromEndUs(waiter.parts, this.#spare.length) <= waiter.deadlineUs
  }

  /** Whether what may be had at once goes to those who are booked first, or, after a stall, is had at the pace of the limit. */
  #goesBehind(parts: readonly Part[], nowUs: number, isLate: boolean, deadlineUs = Number.POSITIVE_INFINITY): boolean {
    const { first, isMixed } = this.#line
    const isBehindOthers =
      isLate &&
      !isMixed &&
      first?.state === 'booked' &&
      first.asksForTheSameAs(parts) &&
      this.#book.dueFromEndUs(parts, this.#spare.length) <= deadlineUs
    return isBehindOthers || this.#departures.fromUs(nowUs) > nowUs
  }

  /**
   * Who gets what was taken. An earlier question may have been refused meanwhile: then the first outside gets it who asks for the same, and the one that
   * asked stands outside instead. If the one that asked holds something already, or has left, the next gets it, or nobody.
   */
  #recipient({ waiter, parts }: Question, { bookedForUs }: Answer, isLate: boolean): Waiter | undefined {
    const asker = waiter.state === 'asking' ? waiter : undefined
    const first = isLate && !this.#line.isMixed ? this.#line.firstWithout(parts, bookedForUs, asker === undefined) : undefined
    if (asker === undefined || first === undefined || asker.number < first.number) return asker ?? first
    if (asker.isOverdue) this.#takeOut(asker).refuse('TIMEOUT')
    else this.#line.standOutside(asker)
    return first
  }

  #booked(waiter: Waiter, behind: Waiter | undefined): void {
    const answer = waiter.answer as Answer
    const refusal = this.#refusal(waiter, answer.bookedForUs)
    if (refusal === undefined) {
      this.#line.standBooked(waiter, behind)
      return
    }
    this.#takeOut(waiter)
    this.#handOn(waiter.parts, answer)
    waiter.refuse(refusal)
  }

  #notTaken(verb: Verb, waiter: Waiter, verdicts: readonly Verdict[]): void {
    const nowUs = this.#desk.nowUs()
    const retryUs = longest(verdicts, 'retryUs')
    waiter.answer = waiter.read(verdicts, nowUs, nowUs)
    // A reservation may be made from then on, to be acted on as far ahead as it may be booked. Who stands in for the store books nothing ahead.
    const aheadUs = retryUs > 0 && verdicts[0]?.degraded !== true ? Math.max(verb.aheadUs, 0) : 0
    const earliestUs = Math.max(nowUs + retryUs + aheadUs, waiter.notBeforeUs)
    const refusal = retryUs === Number.POSITIVE_INFINITY ? 'IMPOSSIBLE' : this.#refusal(waiter, earliestUs)
    if (refusal !== undefined) {
      this.#takeOut(waiter).refuse(refusal)
      return
    }
    const mustStand = verb.op === 'take' || this.#line.asking.has(waiter)
    if (mustStand && !this.#hasSpare(waiter, false)) this.#line.standOutside(waiter)
    if (verb.op === 'take' || waiter === this.#line.firstOutside) this.#retryAtUs = nowUs + retryUs
    if (verb.op === 'take' && waiter === this.#line.firstOutside && this.#horizon.isShared && !waiter.mayBook)
      this.#heldUp(waiter, verdicts, nowUs)
  }

  /** Where nothing can be booked, the first was refused: others may have been faster. */
  #heldUp(waiter: Waiter, verdicts: readonly Verdict[], nowUs: number): void {
    if (!isClaimable(waiter.parts, verdicts)) return
    waiter.heldUp ??= new HeldUp(waiter.parts, nowUs)
    const { heldUp } = waiter
    if (heldUp.mayClaim(nowUs)) this.#claimFor(waiter, this.#retryAtUs)
    if (this.#claim === undefined) this.#retryAtUs = Math.min(this.#retryAtUs, heldUp.nextUs)
  }

  /** Others shall leave room for it until its time has come, as far as is known now. */
  #claimFor(waiter: Waiter, dueUs: number): void {
    const parts = claimOf(waiter.parts)
    const changes = this.#changes
    const answered = (verdicts: readonly Verdict[]) => {
      if (!allAllowed(verdicts) || verdicts[0]?.degraded) return
      const claim = { waiter, parts, taken: chargesOf(parts, verdicts), renewUs: this.#desk.nowUs() + renewalUs(waiter.parts) }
      const isWanted = changes === this.#changes && waiter.state === 'outside' && waiter === this.#line.firstOutside
      if (!isWanted) {
        this.#book.refund(claim.parts, claim.taken)
        return
      }
      this.#claim = claim
      this.#retryAtUs = dueUs
    }
    this.#send({ op: 'take', aheadUs: -1, ofUs: -1 }, parts, 1, answered, () => {})
  }

  #giveUpClaim(): void {
    const claim = this.#claim
    this.#claim = undefined
    if (claim !== undefined) this.#book.refund(claim.parts, claim.taken)
  }

  /** Why a waiter who may act at `earliestUs` at the earliest shall not wait for it. */
  #refusal(waiter: Waiter, earliestUs: number): Refusal | undefined {
    if (earliestUs > waiter.deadlineUs || waiter.isOverdue) return 'TIMEOUT'
    return this.#line.asking.has(waiter) && this.#isFullFor(waiter) ? 'QUEUE_FULL' : undefined
  }

  #isFullFor({ isOneTooMany }: Waiter): boolean {
    return isOneTooMany || this.#line.length >= this.#desk.maxQueue
  }

  #failed({ waiter }: Question, error: unknown): void {
    waiter.questions -= 1
    if (waiter.state === 'asking' || waiter.state === 'outside') this.#takeOut(waiter).fail(error)
  }

  #takeOut(waiter: Waiter): Waiter {
    if (this.#claim?.waiter === waiter) this.#giveUpClaim()
    // Whoever is first outside now may ask for less.
    if (waiter === this.#line.firstOutside) this.#retryAtUs = 0
    this.#line.remove(waiter)
    return waiter
  }

  /**
   * Before whom of the booked ones a waiter stands who may act at that time of the store: those whose time comes later. There are none, unless
   * answers came out of order, or it asks nothing of a limit that they wait for. What counts is their time now: it may have moved up.
   */
  #whoIsBehind(waiter: Waiter, answer: Answer, forUs: number): Waiter | undefined {
    const permits = waiter.parts.map(() => 0)
    let behind: Waiter | undefined
    for (
      let other = this.#line.lastBooked;
      other !== undefined && this.#comesAfter(other, waiter, answer, permits, forUs);
      other = other.before
    ) {
      addCosts(permits, other)
      behind = other
    }
    return behind
  }

  /** `permits`: how many are held behind the other, of each limit. */
  #comesAfter(other: Waiter, waiter: Waiter, answer: Answer, permits: readonly number[], forUs: number): boolean {
    if (!waiter.mayBook) return (other.answer as Answer).bookedForUs > answer.bookedForUs
    return this.#book.isLaterThan(forUs, other.parts, permits)
  }

  /** What was held is given back, and the first outside may try. */
  #release(parts: readonly Part[], { taken }: Answer): void {
    if (mayBook(parts)) this.#releaseBooked(parts)
    else this.#refund(parts, taken)
  }

  #releaseBooked(parts: readonly Part[]): void {
    this.#retryAtUs = 0
    if (this.#onTheirWay > 0) this.#book.oweLatest(parts)
    else this.#book.giveUpLatest(parts)
  }

  #releaseLeft(): void {
    if (!this.#book.owes) return
    this.#book.settle()
    this.#retryAtUs = 0
  }

  #refund(parts: readonly Part[], taken: readonly Charge[]): void {
    this.#retryAtUs = 0
    this.#book.refund(parts, taken)
  }
}

function longest(verdicts: readonly Verdict[], figure: 'delayUs' | 'retryUs'): number {
  let longestUs = 0
  for (const verdict of verdicts) longestUs = Math.max(longestUs, verdict[figure])
  return longestUs
}
