import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, Ask, Case, Step, Topic } from './ask.ts'
import { compareAnswers, type Difference } from './compare.ts'
import type { LiveServer } from './live-server.ts'
import { Steadier } from './steady.ts'

/** The two servers that are compared. */
export interface ServerPair {
  readonly ours: LiveServer
  readonly theirs: LiveServer
}

/** What came of a topic. */
export interface TopicOutcome {
  readonly differences: readonly Difference[]
  readonly requests: number
}

const lanesAtATime = 6

/** An answer together with the request that brought it. */
interface Exchange {
  readonly ask: Ask
  readonly answer: Answer
}

/** Where the requests of a series go, and what the server answered before them. */
interface Setting {
  readonly server: LiveServer
  readonly namespace: string
  readonly before: readonly Answer[]
}

/** Longer than the ten seconds for which kube-apiserver remembers that a token was good. */
const patienceMs = 20_000
const betweenAsksMs = 50

/** Repeats a request that needs the effect of an earlier one, which its server may not have seen yet. */
async function answerWhenReady(
  { server, namespace }: Setting,
  ask: Ask,
  onceOpen: () => Promise<void>,
): Promise<Answer> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const answer = await server.answer(ask, namespace, onceOpen)
    const isReady = ask.until?.(answer) ?? true
    if (isReady || performance.now() > deadline) return answer
    await delay(betweenAsksMs)
  }
}

/** Makes requests one after the other; those that come meanwhile in a watch stand before it. */
async function exchangesOf(
  setting: Setting,
  steps: readonly Step[],
  earlier: readonly Answer[] = [],
): Promise<Exchange[]> {
  const done: Exchange[] = []
  for (const step of steps) {
    const seen = [...earlier, ...done.map(({ answer }) => answer)]
    const ask = typeof step === 'function' ? step(seen, setting.before) : step
    let inside: Exchange[] = []
    const answer = await answerWhenReady(setting, ask, async () => {
      if (ask.meanwhile) inside = await exchangesOf(setting, ask.meanwhile, seen)
    })
    done.push(...inside, { ask, answer })
  }
  return done
}

/** The namespace that the cases of a topic work in, on either server. */
const namespaceOf = (topic: Topic): string => `same-${topic.name.replaceAll(/[^a-z0-9]+/g, '-')}`

async function runCase(
  topic: Topic,
  one: Case,
  settings: readonly [ours: Setting, theirs: Setting],
): Promise<TopicOutcome> {
  const [ours = [], theirs = []] = await Promise.all(
    settings.map((setting) => exchangesOf(setting, one.steps)),
  )
  const ourNames = new Steadier()
  const theirNames = new Steadier()
  const differences = theirs.flatMap(({ ask, answer }, index) => {
    const mine = ours[index]?.answer
    if (!mine) throw new Error(`${one.name}: the servers were asked different things`)
    const request = `${index + 1} ${ask.method} ${ask.path}`
    return compareAnswers(
      { topic: topic.name, case: one.name, request },
      ourNames.answer(mine, one),
      theirNames.answer(answer, one),
    )
  })
  return { differences, requests: theirs.length }
}

async function createNamespace(server: LiveServer, name: string): Promise<void> {
  const { code, text } = await server.answer(
    {
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    },
    name,
  )
  if (code !== 201 && code !== 409) throw new Error(`cannot make namespace ${name}: ${text}`)
}

function lanesOf(cases: readonly Case[]): Case[][] {
  const lanes = new Map<string, Case[]>()
  for (const one of cases) {
    const lane = one.lane ?? one.name
    lanes.set(lane, [...(lanes.get(lane) ?? []), one])
  }
  return [...lanes.values()]
}

/** A server with the namespace of a topic and what its cases find there. */
async function settingOf(server: LiveServer, topic: Topic): Promise<Setting> {
  const namespace = namespaceOf(topic)
  await createNamespace(server, namespace)
  const made = await exchangesOf({ server, namespace, before: [] }, topic.before ?? [])
  return { server, namespace, before: made.map(({ answer }) => answer) }
}

/** Puts all cases of a topic to both servers, after `prepare` if something has to happen first. */
export async function runTopic(
  topic: Topic,
  servers: ServerPair,
  prepare: () => Promise<void> = async () => {},
): Promise<TopicOutcome> {
  const settings = await Promise.all([
    settingOf(servers.ours, topic),
    settingOf(servers.theirs, topic),
  ])
  await prepare()
  const left = lanesOf(topic.cases)
  const outcomes: TopicOutcome[] = []
  const work = async (): Promise<void> => {
    for (let lane = left.shift(); lane; lane = left.shift())
      for (const one of lane) outcomes.push(await runCase(topic, one, settings))
  }
  await Promise.all(Array.from({ length: lanesAtATime }, work))
  return {
    differences: outcomes.flatMap(({ differences }) => differences),
    requests: outcomes.reduce((sum, { requests }) => sum + requests, 0),
  }
}
