import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import * as credentials from '../../../src/credentials/index.ts'
import * as kubeconfigs from '../../../src/kubeconfig/index.ts'
import { privateKeyPem } from '../../../src/pki/index.ts'
import { ask } from './ask.mjs'
import type { ContestCase, Place } from './contest-case.ts'
import { type CountingServer, startCountingServer } from './counting-server.ts'
import { type AskOutcome, classOfKubectl, classOfOurs } from './outcome-class.ts'
import { runPatiently } from './run-patiently.ts'

const driver = fileURLToPath(new URL('ask.mjs', import.meta.url))
const podsPath = '/api/v1/namespaces/default/pods'
const defaultPatienceMs = 20_000

/** Whoever takes part: a kubectl, or our library. */
export type Contestant =
  | { readonly kubectl: string; readonly version: string }
  | { readonly dist: string }

/** What one contestant did in one case. */
export interface Observation {
  readonly outcome: string
  readonly runs: number
  /** Each text of KUBERNETES_EXEC_INFO that was seen, once. */
  readonly execInfo: string
  readonly requests: number
  /** Each `Authorization` header that was seen, once. */
  readonly authorization: string
  /** Each name of a client certificate that was seen, once. */
  readonly peer: string
  /** What the client said, for the message of a failing test. */
  readonly words: string
}

/** A server and a scratch directory in which cases are tried. */
export class Contest {
  readonly #server: CountingServer
  readonly #scratch: string
  #count = 0

  private constructor(server: CountingServer, scratch: string) {
    this.#server = server
    this.#scratch = scratch
  }

  static async open(): Promise<Contest> {
    const server = await startCountingServer()
    const scratch = await mkdtemp(join(tmpdir(), 'sallyport-contest-'))
    const contest = new Contest(server, scratch)
    const { certPem, keyPem } = await server.lab.certificate('file-user')
    await contest.#write('ca.crt', server.lab.caPem)
    const { key } = server.lab.ca
    if (!key) throw new Error('the authority of the lab has no key')
    await contest.#write('ca.key', privateKeyPem(key).reveal())
    await contest.#write('user.crt', certPem)
    await contest.#write('user.key', keyPem.reveal())
    return contest
  }

  async close(): Promise<void> {
    await this.#server.stop()
    await rm(this.#scratch, { recursive: true, force: true })
  }

  /** Lets contestants answer a case in turn, on the same files. */
  async observe(each: ContestCase, contestants: readonly Contestant[]): Promise<Observation[]> {
    const directory = join(this.#scratch, String(this.#count++))
    await mkdir(directory)
    const place: Place = {
      directory,
      caCert: join(this.#scratch, 'ca.crt'),
      caKey: join(this.#scratch, 'ca.key'),
      cert: join(this.#scratch, 'user.crt'),
      key: join(this.#scratch, 'user.key'),
    }
    await this.#prepare(each, place)
    const seen: Observation[] = []
    for (const contestant of contestants) seen.push(await this.#try(each, place, contestant))
    return seen
  }

  async #prepare(each: ContestCase, place: Place): Promise<void> {
    const { directory } = place
    for (const [name, [text, mode]] of Object.entries(each.files ?? {})) {
      await writeFile(join(directory, name), text)
      await chmod(join(directory, name), mode)
    }
    const kubeconfig = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'it',
      clusters: [{ name: 'it', cluster: this.#cluster(each, place) }],
      users: [{ name: 'it', user: typeof each.user === 'function' ? each.user(place) : each.user }],
      contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
    })
    await writeFile(join(directory, 'config'), each.text?.(kubeconfig) ?? kubeconfig)
    const preference = { apiVersion: 'kubectl.config.k8s.io/v1beta1', kind: 'Preference' }
    if (each.policy)
      await writeFile(
        join(directory, 'kuberc'),
        JSON.stringify({ ...preference, ...each.policy(place) }),
      )
  }

  #cluster(each: ContestCase, place: Place): object {
    if (each.plainHttp) return { server: this.#server.plainUrl, ...each.cluster }
    return { server: this.#server.url, 'certificate-authority': place.caCert, ...each.cluster }
  }

  async #try(each: ContestCase, place: Place, contestant: Contestant): Promise<Observation> {
    this.#server.begin(each.refuses ?? (() => false))
    const record = join(place.directory, 'record')
    await rm(record, { force: true })
    const surroundings = {
      patienceMs: each.patienceMs ?? defaultPatienceMs,
      typed: each.typed,
      cwd: place.directory,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: place.directory,
        KUBERC: each.policy ? join(place.directory, 'kuberc') : 'off',
        RECORD: record,
        ...each.env?.(place),
      },
    }
    const { outcome, words } =
      'kubectl' in contestant
        ? await askKubectl(each, contestant.kubectl, surroundings)
        : await askOurs(each, contestant.dist, surroundings)
    const infos = lines(await readFile(record, 'utf8').catch(() => ''))
    const { seen } = this.#server
    return {
      outcome,
      runs: infos.length,
      execInfo: distinct(infos),
      requests: seen.length,
      authorization: distinct(seen.map(({ authorization }) => masked(authorization ?? '-'))),
      peer: distinct(seen.map(({ commonName }) => commonName ?? '-')),
      words,
    }
  }

  async #write(name: string, text: string): Promise<void> {
    await writeFile(join(this.#scratch, name), text, { mode: 0o600 })
  }
}

const lines = (text: string): string[] => text.split('\n').filter(Boolean)
const distinct = (values: readonly string[]): string => [...new Set(values)].sort().join('\n')
/** What a stand-in makes anew at each run cannot be compared. */
const masked = (authorization: string): string => authorization.replace(/(k8s-aws-v1\.).*/, '$1...')

interface Surroundings {
  readonly patienceMs: number
  readonly typed: string | undefined
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

interface Said {
  readonly outcome: string
  readonly words: string
}

async function askKubectl(
  each: ContestCase,
  kubectl: string,
  surroundings: Surroundings,
): Promise<Said> {
  const what = each.several ? ['pods'] : ['--raw', podsPath]
  const kubeconfig = join(surroundings.cwd, 'config')
  const cache = await mkdtemp(join(surroundings.cwd, 'cache-'))
  const end = await runPatiently(
    [kubectl, '--kubeconfig', kubeconfig, '--cache-dir', cache, 'get', ...what],
    surroundings,
  )
  return { outcome: classOfKubectl(end), words: end.said }
}

/** In a process of its own only where that matters, because starting one takes long. */
async function askOurs(each: ContestCase, dist: string, surroundings: Surroundings): Promise<Said> {
  const { cwd, env, typed } = surroundings
  const order = {
    kubeconfig: join(cwd, 'config'),
    home: cwd,
    paths: Array.from({ length: each.several ? 4 : 1 }, () => podsPath),
    ...(each.policy && { kuberc: join(cwd, 'kuberc') }),
  }
  if (typed === undefined) {
    const here = { env, cwd, stdinIsTty: () => false, stderr: new Writable({ write: forget }) }
    const rules = { ...here, ...each.rules }
    return said(await ask({ ...kubeconfigs, ...credentials }, { ...order, rules }))
  }
  const result = join(cwd, 'result')
  const text = JSON.stringify({ ...order, rules: each.rules })
  const end = await runPatiently([process.execPath, driver, dist, result, text], surroundings)
  return said(end.code === undefined ? undefined : JSON.parse(await readFile(result, 'utf8')))
}

const forget = (_chunk: unknown, _encoding: unknown, done: () => void): void => done()

const said = (outcomes: AskOutcome[] | undefined): Said => ({
  outcome: classOfOurs(outcomes),
  words: JSON.stringify(outcomes),
})
