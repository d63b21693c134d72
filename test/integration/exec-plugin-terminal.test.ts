import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { buildOnce } from '../build-once.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const standIns = fileURLToPath(new URL('../support/exec-plugins/', import.meta.url))
// The terminal is made by script(1) of util-linux; other systems have one with other options.
const terminalMaker = 'script'
const hasScript = spawnSync(terminalMaker, ['--version'], { encoding: 'utf8' }).stdout?.includes(
  'util-linux',
)
if (!hasScript) console.log('skipped: exec plugins at a terminal need script(1) of util-linux')

let dist: string
beforeAll(async () => {
  dist = await buildOnce()
})

interface Session {
  readonly screen: () => string
  readonly type: (text: string) => void
  readonly shows: (text: string) => Promise<void>
  readonly outcomes: () => Promise<readonly { token?: string; code?: string; message?: string }[]>
  readonly infos: () => { readonly interactive: boolean }[]
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

function start(modes: readonly string[], rules: object, atTerminal: boolean): Session {
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-terminal-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const [result, record] = [join(directory, 'result'), join(directory, 'record')]
  const sections = modes.map((interactiveMode, index) =>
    JSON.stringify({
      command: join(standIns, 'asks-for-code'),
      args: [String(index)],
      apiVersion: 'client.authentication.k8s.io/v1',
      interactiveMode,
      env: { RECORD: record },
    }),
  )
  const args = [join(standIns, 'run-plugin.mjs'), dist, result, JSON.stringify(rules), ...sections]
  const command = [process.execPath, ...args].map(quote).join(' ')
  const child = atTerminal
    ? spawn(terminalMaker, ['-qefc', command, '/dev/null'], { stdio: 'pipe' })
    : spawn(process.execPath, args, { stdio: 'pipe' })
  onTestFinished(() => void child.kill())
  return sessionOf(child, result, record)
}

function sessionOf(child: ChildProcess, result: string, record: string): Session {
  let screen = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      screen += String(chunk)
    })
  }
  const ended = once(child, 'close')
  return {
    screen: () => screen,
    type: (text) => void child.stdin?.write(text),
    shows: async (text) =>
      vi.waitFor(() => expect(screen).toContain(text), { timeout: 20_000, interval: 10 }),
    outcomes: async () => {
      await ended
      return JSON.parse(readFileSync(result, 'utf8'))
    },
    infos: () =>
      readFileSync(record, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).spec),
  }
}

describe.skipIf(!hasScript)('at a terminal', () => {
  test.each(['IfAvailable', 'Always'])(
    '%s: the plugin can ask the user [CRED-E5, CRED-R6, CRED-R11]',
    async (mode) => {
      const session = start([mode], {}, true)
      await session.shows('token code: ')
      session.type('4711\n')
      expect(await session.outcomes()).toEqual([{ token: 'code-4711' }])
      expect(session.infos()).toEqual([{ interactive: true }])
    },
  )

  test('Never: it can complain but not ask [CRED-E5, CRED-R6]', async () => {
    const session = start(['Never'], {}, true)
    expect(await session.outcomes()).toMatchObject([{ code: 'EXIT' }])
    expect(session.screen()).toContain('token code: ')
    expect(session.infos()).toEqual([{ interactive: false }])
  })

  test('stdin that the application reads itself is not handed out [CRED-E5]', async () => {
    const session = start(['IfAvailable', 'Always'], { stdinUnavailable: 'reading -f -' }, true)
    const [polite, insisting] = await session.outcomes()
    expect(polite?.code).toBe('EXIT')
    expect(insisting?.code).toBe('INTERACTIVE_UNAVAILABLE')
    expect(insisting?.message).toContain('reading -f -')
    expect(session.infos()).toEqual([{ interactive: false }])
  })

  test('two prompts never mix [CRED-E7]', async () => {
    // Those that do not ask start last: once they are there, the second prompt would be as well.
    const session = start(['Always', 'Always', 'Never', 'Never', 'Never'], {}, true)
    const asking = () => session.infos().filter((spec) => spec.interactive)
    const silent = () => session.infos().filter((spec) => !spec.interactive)
    await vi.waitFor(() => expect(silent()).toHaveLength(3), { timeout: 20_000, interval: 10 })
    await vi.waitFor(() => expect(asking()).toHaveLength(1), { timeout: 20_000, interval: 10 })
    session.type('1\n')
    await vi.waitFor(() => expect(asking()).toHaveLength(2), { timeout: 20_000, interval: 10 })
    session.type('2\n')
    const outcomes = await session.outcomes()
    expect(outcomes.slice(0, 2)).toEqual([{ token: 'code-1' }, { token: 'code-2' }])
  })
})

test('without a terminal, Always is refused before the plugin runs [CRED-E5]', async () => {
  const session = start(['Always'], {}, false)
  expect(await session.outcomes()).toMatchObject([{ code: 'INTERACTIVE_UNAVAILABLE' }])
  expect(() => session.infos()).toThrow('ENOENT')
})
