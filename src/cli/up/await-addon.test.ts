import { describe, expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { type AddonQuestion, awaitAddon, tellAddon } from './addon-process.ts'

const never = new AbortController().signal

/** Asks with little patience; the result is all news in their order. */
async function newsOf(question: Partial<AddonQuestion>): Promise<string[]> {
  const news: string[] = []
  await awaitAddon(
    {
      ask: () => Promise.resolve(),
      problem: () => undefined,
      patienceMs: 20,
      everyMs: 1,
      clock: systemClock,
      signal: never,
      ...question,
    },
    { answers: () => news.push('answers'), isSilent: (why) => news.push(`silent: ${why}`) },
  )
  return news
}

const noEndpoints = (): Promise<never> => Promise.reject(new Error('no endpoints'))

describe('an add-on [ADDON-E4]', () => {
  test('is told of when it answers, and not before', async () => {
    let asked = 0
    const ask = (): Promise<void> => (++asked < 3 ? noEndpoints() : Promise.resolve())
    expect(await newsOf({ ask, patienceMs: 60_000 })).toEqual(['answers'])
    expect(asked).toBe(3)
  })

  test('that takes too long is told of once, with the reason, and again when it answers', async () => {
    const began = performance.now()
    const ask = (): Promise<void> =>
      performance.now() - began < 60 ? noEndpoints() : Promise.resolve()
    expect(await newsOf({ ask })).toEqual(['silent: no endpoints', 'answers'])
  })

  test('that leaves a question open is not waited for', async () => {
    const answers = [
      (signal: AbortSignal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        }),
    ]
    const ask = (signal: AbortSignal): Promise<unknown> =>
      answers.pop()?.(signal) ?? Promise.resolve()
    expect(await newsOf({ ask })).toEqual(['silent: the time is up', 'answers'])
  })

  test('that has ended is told of at once and not asked for again', async () => {
    let asked = 0
    const ask = (): Promise<never> => {
      asked += 1
      return noEndpoints()
    }
    const problem = (): string | undefined => (asked > 0 ? 'it ended (1): no such file' : undefined)
    expect(await newsOf({ ask, problem, patienceMs: 60_000 })).toEqual([
      'silent: it ended (1): no such file',
    ])
    expect(asked).toBe(1)
  })

  test('is not told of when everything ends', async () => {
    expect(await newsOf({ signal: AbortSignal.abort() })).toEqual([])
  })
})

describe('the news of an add-on', () => {
  const kubeconfig = '/data/admin.kubeconfig'
  const path = '/api/v1/proxy/namespaces/kube-system/services/whoami/'
  const told = async (isJson: boolean, why?: string): Promise<readonly [string, string]> => {
    let [stdout, stderr] = ['', '']
    const io = {
      stdout: (text: string) => void (stdout += text),
      stderr: (text: string) => void (stderr += text),
    }
    const addon = {
      addon: 'whoami',
      path,
      follow: async (news: { answers: () => void; isSilent: (why: string) => void }) =>
        why === undefined ? news.answers() : news.isSilent(why),
    } as const
    await tellAddon(addon, { io, isJson, kubeconfig })
    return [stdout, stderr]
  }

  test('are its address and the way to look at it', async () => {
    const [stdout, stderr] = await told(false)
    expect(stdout).toContain(`whoami is at http://localhost:8001${path}?add-auth=true\n`)
    expect(stdout).toContain(`sallyport proxy --kubeconfig ${kubeconfig}\n`)
    expect(stderr).toBe('')
  })

  test('are no result if it does not answer, and command no terminal', async () => {
    const [stdout, stderr] = await told(false, 'it ended (1): \u001B[2J')
    expect([stdout, stderr]).toEqual(['', expect.stringContaining('it ended (1): U+001B[2J\n')])
  })

  test.each([
    ['its path', undefined, { path }],
    ['why there is none', 'it ended', { problem: 'it ended' }],
  ])('are a line of JSON with %s', async (_what, why, fields) => {
    const [stdout, stderr] = await told(true, why)
    expect([JSON.parse(stdout), stderr]).toEqual([{ addon: 'whoami', ...fields }, ''])
  })
})
