import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { joinOptions } from '../../src/cli/join/options.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createToken } from './join-lab.suite.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(new URL('../../docs/features/discovery.md', import.meta.url), 'utf8')
const section = (title: string): string =>
  new RegExp(`^## ${title}\\n([^]*?)(?=^## |(?![^]))`, 'm').exec(page)?.[1] ?? ''

describe('the page of discovery', () => {
  test('names only options that join has', () => {
    const sections = ['Methods', 'Join a machine', 'Join a person', 'Options of join']
    const named = sections.flatMap((title) => [...section(title).matchAll(/`[^`]*?--([a-z-]+)/g)])
    expect(named.length).toBeGreaterThan(15)
    const others = new Set(named.map(([, name = '']) => name))
    expect([...others].filter((name) => !Object.hasOwn(joinOptions, name))).toEqual([])
  })

  test('has every code of a failure', () => {
    const source = ['bootstrap/discovery/errors.ts', 'bootstrap/join/errors.ts']
      .map((file) => readFileSync(`${root}src/${file}`, 'utf8'))
      .join('')
    const reasons = [...source.matchAll(/^ {2}\| '([a-z-]+)'$/gm)].map(([, reason = '']) => reason)
    expect(reasons.length).toBeGreaterThan(20)
    const told = section('When it does not work')
    const untold = reasons.filter(
      (reason) => !told.includes(`\`${reason.toUpperCase().replaceAll('-', '_')}\``),
    )
    // That one is wrong usage on the command line.
    expect(untold).toEqual(['bad-arguments'])
  })
})

describe('the example of the library', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess()
    const build = "import('./scripts/build.mjs').then((module) => module.ensureBuilt())"
    execFileSync(process.execPath, ['-e', build], { cwd: root, stdio: 'pipe' })
  }, 180_000)
  afterAll(() => server.close())

  test('joins a cluster as it stands there [DISC-C9, DISC-R1]', async () => {
    const [, code = ''] = /```ts\n([^]*?)```/.exec(section('As a library')) ?? []
    expect(code).toContain("from 'sallyport/discovery'")
    const env = {
      ...process.env,
      TOKEN: await createToken(server),
      ADDRESS: `127.0.0.1:${server.port}`,
    }
    // The server lives in this process, so it must not wait for the child without answering it.
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: root, env })
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number]>,
    ])
    expect([status, stderr]).toEqual([0, 'asking\nproven\nproven\n'])
    expect(stdout).toContain('current-context: system:node:worker-1@127.0.0.1')
  }, 60_000)
})
