import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Serving } from '../../apiserver/index.ts'
import { createKubeClient, type Transport, transportFromKubeconfig } from '../../client/index.ts'
import {
  ApiError,
  type Clock,
  type ClusterView,
  type Component,
  type KubeObject,
  type Logger,
  neverFails,
  pause,
  readFileIfPresent,
  visibleLine,
  withinTime,
} from '../../core/index.ts'
import { loadContext } from '../../kubeconfig/index.ts'
import type { Io } from '../io.ts'
import {
  type AddonName,
  type PackagedAddon,
  readPackagedAddon,
  requireEndpoint,
} from './packaged-addon.ts'

/** The page of an add-on, as the user of a kubeconfig gets it from the API server. */
interface AddonPage {
  /** Rejects unless it is there. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>
  readonly close: () => void
}

/** A page that is asked for with its user; nothing is read or opened before the first time. */
function addonPage(kubeconfig: string, path: string): AddonPage {
  let opened: Transport | undefined
  const asked = { method: 'GET', path: `${path}?add-auth=true`, headers: {} }
  return {
    ask: async (signal) => {
      opened ??= await open(kubeconfig)
      return createKubeClient({ transport: opened }).request(asked, signal)
    },
    close: () => opened?.destroy(),
  }
}

const open = async (kubeconfig: string): Promise<Transport> =>
  transportFromKubeconfig(await loadContext({ explicitPath: kubeconfig, home: '' }))

/** What is told of an add-on that was started. */
export interface AddonNews {
  /** Its page is there. */
  readonly answers: () => void
  /** It is not there in time, and why; told once, since it may still come. */
  readonly isSilent: (why: string) => void
}

/** How an add-on is asked for. */
export interface AddonQuestion {
  /** Rejects while its page is not there. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>
  /** Why it will never be there, once that is known. */
  readonly problem: () => string | undefined
  /** After which time its silence is told. */
  readonly patienceMs: number
  readonly everyMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Asks until an add-on answers, cannot any more, or the signal aborts; never rejects. */
export async function awaitAddon(question: AddonQuestion, news: AddonNews): Promise<void> {
  const { ask, problem, patienceMs, everyMs, clock, signal } = question
  const impatientAt = clock.monotonic() + patienceMs
  let isTold = false
  const tell = (why: string): void => {
    if (!isTold) news.isSilent(why)
    isTold = true
  }
  while (!signal.aborted) {
    const end = problem()
    if (end !== undefined) return tell(end)
    try {
      await withinTime(patienceMs, signal, ask)
      return news.answers()
    } catch (error) {
      // A request that timed out has used up all the time, whatever the clock says: timers may be early by a millisecond.
      const isTimeout = error instanceof DOMException && error.name === 'TimeoutError'
      const isLate = isTimeout || clock.monotonic() >= impatientAt
      if (isLate && !signal.aborted) tell(problem() ?? reasonOf(error))
    }
    await pause(everyMs, signal)
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : 'it cannot be asked'

/** A port of loopback on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port was given out')
  return address.port
}

const dayMs = 24 * 60 * 60_000
const lifetimeMs = 90 * dayMs
const renewAfterMs = 30 * dayMs

/** The kubeconfig under which this machine runs add-ons; made anew when it is old or the CA is another. */
async function ensureMachineKubeconfig(
  { view, pki, url: server }: Serving,
  { name: addon, namespace }: PackagedAddon,
  where: { readonly directory: string; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<string> {
  const { directory, clock, signal } = where
  const file = join(directory, `${addon}.kubeconfig`)
  const present = await readFileIfPresent(file)
  const authority = Buffer.from(pki.clusterCa.bundlePem).toString('base64')
  const isGood = present?.includes(authority) === true && present.includes(server)
  if (isGood && clock.now() - (await stat(file)).mtimeMs < renewAfterMs) return file
  const { createMachine } = await import('../../apiserver/users/index.ts')
  const { writeKubeconfig } = await import('../../kubeconfig/index.ts')
  const machine = {
    name: machineName(addon),
    namespaces: [namespace],
    serviceAccounts: [addon],
    lifetimeMs,
    server,
  } as const
  const { kubeconfig } = await createMachine(machine, { view, pki, clock }, signal)
  await writeKubeconfig(file, kubeconfig)
  return file
}

/** This machine's, as far as it can be the name of one. */
function machineName(suffix: string): string {
  const plain = hostname()
    .toLowerCase()
    .replaceAll(/[^-a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return `${plain.slice(0, 50) || 'machine'}-${suffix}`
}

/** What an add-on that runs beside the server needs. */
export interface AddonParts {
  readonly name: AddonName
  readonly serving: () => Serving
  /** Where the kubeconfig of this machine is kept. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

const patienceMs = 20_000
const askAgainMs = 250

const command = fileURLToPath(new URL('../main.js', import.meta.url))

/** An add-on as a process of `sallyport workload run`; if it cannot run that is logged, and the server goes on. */
export class AddonProcess implements Component {
  readonly name: string
  readonly addon: AddonName
  readonly failed = neverFails()
  readonly #parts: AddonParts
  readonly #log: Logger
  #child: ChildProcess | undefined
  #isStopping = false
  #path = ''
  #namespace = ''
  #lastWords = ''
  /** Why it does not run. */
  #problem: string | undefined

  constructor(parts: AddonParts) {
    this.#parts = parts
    this.addon = parts.name
    this.name = `add-on ${parts.name}`
    this.#log = parts.log.child({ part: this.name })
  }

  async start(): Promise<void> {
    try {
      await this.#run(await readPackagedAddon(this.#parts.name))
    } catch (err) {
      this.#problem = `it cannot run: ${err instanceof Error ? err.message : String(err)}`
      this.#log.error({ err }, 'cannot run; everything else goes on')
    }
  }

  /** Where its page is, below an address of the API server. */
  get path(): string {
    return this.#path
  }

  /** Tells when its page is there, or why it is not; resolves when nothing more is to be told. */
  async follow(news: AddonNews): Promise<void> {
    const { serving, clock, signal } = this.#parts
    const { view, adminKubeconfig } = serving()
    const page = addonPage(adminKubeconfig, this.#path)
    const place = { namespace: this.#namespace, service: this.addon }
    const ask = async (within: AbortSignal): Promise<unknown> => {
      await requireEndpoint(view, place, within)
      return page.ask(within)
    }
    const problem = (): string | undefined => this.#problem
    const question = { ask, problem, patienceMs, everyMs: askAgainMs, clock, signal }
    await awaitAddon(question, news).finally(page.close)
  }

  async stop(deadline: AbortSignal): Promise<void> {
    const child = this.#child
    this.#isStopping = true
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    const kill = (): void => void child.kill('SIGKILL')
    deadline.addEventListener('abort', kill, { once: true })
    child.kill('SIGTERM')
    await gone
    deadline.removeEventListener('abort', kill)
  }

  async #run(addon: PackagedAddon): Promise<void> {
    const { serving, directory, clock, signal } = this.#parts
    await removeOldRights(serving().view, { namespace: addon.namespace, directory }, signal)
    await ensureObjects(serving().view, addon.objects, signal)
    const where = { directory, clock, signal }
    const kubeconfig = await ensureMachineKubeconfig(serving(), addon, where)
    const args = argumentsFor(addon, kubeconfig, await freePort())
    this.#namespace = addon.namespace
    this.#path = `/api/v1/proxy/namespaces/${addon.namespace}/services/${addon.name}/`
    this.#child = spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#follow(this.#child)
  }

  #follow(child: ChildProcess): void {
    const tell = (lines: NodeJS.ReadableStream | null, say: (line: string) => void): void => {
      if (lines) createInterface({ input: lines }).on('line', say)
    }
    tell(child.stdout, (line) => this.#log.info({}, line))
    tell(child.stderr, (line) => {
      this.#lastWords = line
      this.#log.warn({}, line)
    })
    child.on('error', (err) => {
      this.#problem = `it cannot be started: ${err.message}`
      this.#log.error({ err }, 'cannot be started')
    })
    // Its last words may come after its end.
    child.on('close', (exitCode, signal) => {
      this.#problem ??= `it ended (${signal ?? exitCode}): ${this.#lastWords}`
    })
    child.on('exit', (exitCode, signal) => {
      if (!this.#isStopping) this.#log.error({ exitCode, signal }, 'ended; everything else goes on')
    })
  }
}

function argumentsFor(
  { name, namespace, program }: PackagedAddon,
  kubeconfig: string,
  port: number,
) {
  const pod = ['--namespace', namespace, '--service-account', name, '--service', name]
  // Whoever reaches the server by loopback may be reached so in turn.
  const place = ['--pod-ip', '127.0.0.1', '--port', `http=${port}`]
  return [
    'workload',
    'run',
    '--kubeconfig',
    kubeconfig,
    ...pod,
    ...place,
    '--',
    process.execPath,
    program,
  ]
}

/** Makes what is missing; what is there stays as somebody may have changed it. */
async function ensureObjects(
  view: ClusterView,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const object of objects) {
    await view.write('create', object, {}, signal).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error
    })
  }
}

/**
 * Deletes what earlier versions granted and this one does not: to act as any user, and to request tokens of every
 * service account of the add-on's namespace.
 */
async function removeOldRights(
  view: ClusterView,
  { namespace, directory }: { readonly namespace: string; readonly directory: string },
  signal: AbortSignal,
): Promise<void> {
  const old = (kind: string, name: string, where = {}): KubeObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind,
    metadata: { name, ...where },
  })
  const objects = [
    old('ClusterRoleBinding', 'whoami-acts-for-users'),
    old('ClusterRole', 'whoami-acts-for-users'),
    old('RoleBinding', `sallyport:workloads:${machineName('addons')}`, { namespace }),
  ]
  for (const object of objects) {
    await view.write('delete', object, {}, signal).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== 'NotFound') throw error
    })
  }
  await rm(join(directory, 'addons.kubeconfig'), { force: true })
}

/** How news of add-ons are told. */
export interface AddonReport {
  readonly io: Pick<Io, 'stdout' | 'stderr'>
  readonly isJson: boolean
  /** For the proxy by which its page is looked at. */
  readonly kubeconfig: string
}

/** Says where an add-on is once it answers, or why it does not. */
export async function tellAddon(
  process: Pick<AddonProcess, 'addon' | 'path' | 'follow'>,
  { io, isJson, kubeconfig }: AddonReport,
): Promise<void> {
  const { addon } = process
  const asJson = (fields: object): void => io.stdout(`${JSON.stringify({ addon, ...fields })}\n`)
  await process.follow({
    answers: () =>
      isJson
        ? asJson({ path: process.path })
        : io.stdout(
            `The add-on ${addon} is at http://localhost:8001${process.path}?add-auth=true\n` +
              `  once a proxy of yours runs: sallyport proxy --kubeconfig ${kubeconfig}\n`,
          ),
    isSilent: (why) =>
      isJson
        ? asJson({ problem: why })
        : io.stderr(
            `warning: the add-on ${addon} does not answer: ${visibleLine(why)}\n` +
              '  everything else goes on; the log tells more\n',
          ),
  })
}
