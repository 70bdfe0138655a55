/**
 * A network of our own: it stands between a client and a server, and does to their bytes what
 * networks do. It reads just enough of the protocol to know where a request and its reply begin and
 * end, so that it can strike at a chosen place: before the server has seen a request, in the middle
 * of it, or in the middle of the reply, when the server has long done what it was told.
 */
import { createServer, connect as openSocket, type Server, type Socket } from 'node:net'

const HOST = '127.0.0.1'

/** What becomes of a request and its reply. What is not struck passes. */
export type Fate =
  | undefined
  /**
   * So many bytes of it still arrive, then the connection ends on both sides. A reply is cut after
   * the server has done the request.
   */
  | { readonly cut: 'request' | 'reply'; readonly afterBytes: number }
  /**
   * It is lost, and whatever comes after it in this direction, as when a route is gone: the
   * connection looks alive and is not.
   */
  | { readonly drop: 'request' | 'reply' }
  /** It comes late, and whatever is behind it. */
  | { readonly delay: 'request' | 'reply'; readonly ms: number }
  /** The server never sees it: the client gets these bytes for a reply. */
  | { readonly answer: string }

/** Decides the fate of a request from its words. */
export type Fates = (command: readonly string[]) => Fate

export interface FaultProxy {
  readonly host: string
  readonly port: number
  /** Whole requests that came from clients, and whole replies that came from the server. */
  readonly requests: number
  readonly replies: number
  /** How many requests were struck. */
  readonly struck: number
  /** From now on requests fare so. */
  strike(fates: Fates): void
  /** Ends every connection, and each new one as soon as it is made. */
  refuse(): void
  /** Ends the connections that are open now. */
  cutAll(): void
  /**
   * The connections that are open now look alive and are not: nothing passes on them any more, and
   * nobody is told. New ones are served.
   */
  forgetAll(): void
  /**
   * Everything passes again. Connections that have lost something end, and those that would lose
   * what is still under way: nobody will ever send it again.
   */
  heal(): void
  /** New connections go to the server on this port. */
  leadTo(port: number): void
  close(): Promise<void>
}

/** Clients say more by themselves than they are told to. What charges is a script. */
export function isScript([name = '']: readonly string[]): boolean {
  return /^EVAL(SHA)?$/i.test(name)
}

export function ofScripts(fate: Fate): Fates {
  return (command) => (isScript(command) ? fate : undefined)
}

/** What a client says by itself when it has connected. */
const GREETING = /^(HELLO|AUTH|CLIENT|INFO|SELECT|PING)$/i

/**
 * Everything that a client is told to send. It can connect meanwhile, and does not know what is
 * coming.
 */
export function ofCalls(fate: Fate): Fates {
  return ([name = '']) => (GREETING.test(name) ? undefined : fate)
}

/** Only the next one that would be struck. */
export function once(fates: Fates): Fates {
  let done = false
  return (command) => {
    const fate = done ? undefined : fates(command)
    done ||= fate !== undefined
    return fate
  }
}

export async function startProxy(serverPort: number): Promise<FaultProxy> {
  const links = new Set<Link>()
  const count = { requests: 0, replies: 0, struck: 0 }
  let fates: Fates = () => undefined
  let refusing = false
  let targetPort = serverPort
  const cutAll = () => {
    for (const link of links) link.end()
  }
  const listener = createServer((client) => {
    // An error of a socket that has no listener ends the process.
    client.on('error', () => undefined)
    if (refusing) {
      client.resetAndDestroy()
      return
    }
    const link = new Link(client, openSocket(targetPort, HOST), {
      fateOf(command) {
        count.requests += 1
        const fate = fates(command)
        count.struck += fate === undefined ? 0 : 1
        return fate
      },
      onReply() {
        count.replies += 1
      },
      onEnd: () => links.delete(link),
    })
    links.add(link)
  })
  return {
    host: HOST,
    port: await listening(listener),
    get requests() {
      return count.requests
    },
    get replies() {
      return count.replies
    },
    get struck() {
      return count.struck
    },
    strike(next) {
      fates = next
    },
    refuse() {
      refusing = true
      cutAll()
    },
    cutAll,
    forgetAll() {
      for (const link of links) link.forget()
    },
    heal() {
      fates = () => undefined
      refusing = false
      for (const link of links) if (link.isBroken) link.end()
    },
    leadTo(port) {
      targetPort = port
    },
    close() {
      cutAll()
      return new Promise((resolve) => listener.close(() => resolve()))
    },
  }
}

function listening(listener: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(0, HOST, () => resolve((listener.address() as { port: number }).port))
  })
}

interface LinkEvents {
  fateOf(command: readonly string[]): Fate
  onReply(): void
  onEnd(): void
}

/** One connection of a client, and the one to the server that belongs to it. */
class Link {
  #hasLost = false
  readonly #client: Socket
  readonly #server: Socket
  readonly #events: LinkEvents
  readonly #requests = new Direction()
  readonly #replies = new Direction()
  /** The fates of the requests that are not answered yet, the oldest first. */
  readonly #open: Fate[] = []
  #fromClient: Buffer = Buffer.alloc(0)
  #fromServer: Buffer = Buffer.alloc(0)
  #ended = false
  /** What a replica is sent are no replies any more: it passes as it is. */
  #isReplica = false

  constructor(client: Socket, server: Socket, events: LinkEvents) {
    this.#client = client
    this.#server = server
    this.#events = events
    server.on('error', () => undefined)
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.once('close', () => this.end())
    }
    client.on('data', (bytes) => this.#onRequests(bytes))
    server.on('data', (bytes) => this.#onReplies(bytes))
  }

  /** Whether it has lost something, or will: the server may answer a struck request much later. */
  get isBroken(): boolean {
    return this.#hasLost || this.#open.some((fate) => fate !== undefined && ('drop' in fate || 'cut' in fate))
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#requests.stop()
    this.#replies.stop()
    this.#client.destroy()
    this.#server.destroy()
    this.#events.onEnd()
  }

  forget(): void {
    this.#hasLost = true
    this.#requests.close()
    this.#replies.close()
  }

  #onRequests(bytes: Buffer): void {
    if (this.#isReplica) {
      this.#requests.do(() => this.#server.write(bytes))
      return
    }
    this.#fromClient = Buffer.concat([this.#fromClient, bytes])
    for (let end = endOf(this.#fromClient, 0); end >= 0; end = endOf(this.#fromClient, 0)) {
      const request = this.#fromClient.subarray(0, end)
      this.#fromClient = this.#fromClient.subarray(end)
      const command = wordsOf(request)
      this.#isReplica ||= /^P?SYNC$/i.test(command[0] as string)
      const fate = this.#events.fateOf(command)
      if (fate !== undefined && 'answer' in fate) this.#open.push(fate)
      else this.#send(request, fate)
      this.#answerOurselves()
    }
  }

  #send(request: Buffer, fate: Fate): void {
    this.#open.push(fate)
    this.#pass(this.#requests, this.#server, request, fate, 'request')
  }

  #onReplies(bytes: Buffer): void {
    if (this.#isReplica) {
      this.#replies.do(() => this.#client.write(bytes))
      return
    }
    this.#fromServer = Buffer.concat([this.#fromServer, bytes])
    for (let end = endOf(this.#fromServer, 0); end >= 0; end = endOf(this.#fromServer, 0)) {
      const reply = this.#fromServer.subarray(0, end)
      this.#fromServer = this.#fromServer.subarray(end)
      const isReply = reply[0] !== PUSH
      if (isReply) this.#events.onReply()
      this.#pass(this.#replies, this.#client, reply, isReply ? this.#open.shift() : undefined, 'reply')
      this.#answerOurselves()
    }
  }

  /** A reply of ours waits until those before it are through. */
  #answerOurselves(): void {
    for (let next = this.#open[0]; next !== undefined && 'answer' in next; next = this.#open[0]) {
      this.#open.shift()
      this.#pass(this.#replies, this.#client, Buffer.from(next.answer), undefined, 'reply')
    }
  }

  #pass(direction: Direction, to: Socket, bytes: Buffer, fate: Fate, part: 'request' | 'reply'): void {
    const delayMs = fate !== undefined && 'delay' in fate && fate.delay === part ? fate.ms : 0
    if (fate !== undefined && 'drop' in fate && fate.drop === part) {
      this.#hasLost = true
      direction.close()
    }
    if (fate !== undefined && 'cut' in fate && fate.cut === part) {
      direction.do(() => (fate.afterBytes > 0 ? to.write(bytes.subarray(0, fate.afterBytes), () => this.end()) : this.end()))
      direction.close()
    }
    direction.do(() => to.write(bytes), delayMs)
  }
}

interface Task {
  readonly dueMs: number
  readonly act: () => void
}

/**
 * Writes in one direction, one after the other, each no sooner than it is due. A closed direction
 * finishes what it has.
 */
class Direction {
  readonly #tasks: Task[] = []
  #timer: NodeJS.Timeout | undefined
  #closed = false

  do(act: () => void, delayMs = 0): void {
    if (this.#closed) return
    this.#tasks.push({ dueMs: performance.now() + delayMs, act })
    if (this.#timer === undefined) this.#goOn()
  }

  close(): void {
    this.#closed = true
  }

  /** Lets go of what it has, too. */
  stop(): void {
    this.#closed = true
    this.#tasks.length = 0
    clearTimeout(this.#timer)
  }

  #goOn(): void {
    this.#timer = undefined
    for (let next = this.#tasks[0]; next !== undefined; next = this.#tasks[0]) {
      const leftMs = next.dueMs - performance.now()
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#goOn(), leftMs)
        return
      }
      this.#tasks.shift()
      next.act()
    }
  }
}

const PUSH = 0x3e
const SIZED = '$=!'
const LISTS = '*~>%|'

/** Where the value that begins at `at` ends, or -1 if that has not come yet. */
function endOf(bytes: Buffer, at: number): number {
  const lineEnd = bytes.indexOf('\r\n', at)
  if (lineEnd < 0) return -1
  const type = String.fromCharCode(bytes[at] as number)
  const size = Number(bytes.toString('latin1', at + 1, lineEnd))
  const next = lineEnd + 2
  if (SIZED.includes(type)) return size < 0 ? next : whole(bytes, next + size + 2)
  if (LISTS.includes(type)) return endOfItems(bytes, next, itemsOf(type, size))
  return next
}

/**
 * A map has two values for each entry, and attributes stand before the value that they belong to.
 */
function itemsOf(type: string, size: number): number {
  if (type === '%') return 2 * size
  return type === '|' ? 2 * size + 1 : size
}

function endOfItems(bytes: Buffer, at: number, items: number): number {
  let end = at
  for (let item = 0; item < items && end >= 0; item++) end = endOf(bytes, end)
  return end
}

function whole(bytes: Buffer, end: number): number {
  return end <= bytes.length ? end : -1
}

/** The words of a whole request: a list of sized strings. */
function wordsOf(request: Buffer): string[] {
  const words: string[] = []
  for (let at = request.indexOf('\r\n') + 2; at < request.length; ) {
    const lineEnd = request.indexOf('\r\n', at)
    const size = Number(request.toString('latin1', at + 1, lineEnd))
    words.push(request.toString('utf8', lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
  return words
}
