import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  ApiError,
  type Clock,
  type ClusterView,
  type Component,
  type KubeObject,
  type Logger,
  neverFails,
} from '../../core/index.ts'
import type { Serving } from '../../server/index.ts'
import { addonPage } from './addon-page.ts'
import { type AddonNews, awaitAddon } from './await-addon.ts'
import { freePort } from './free-port.ts'
import { ensureMachineKubeconfig } from './machine-kubeconfig.ts'
import { type AddonName, type PackagedAddon, readPackagedAddon } from './packaged-addon.ts'
import { requireEndpoint } from './require-endpoint.ts'

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
    await ensureObjects(serving().view, addon.objects, signal)
    const where = { directory, clock, signal }
    const kubeconfig = await ensureMachineKubeconfig(serving(), addon.namespace, where)
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
