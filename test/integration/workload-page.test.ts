import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { commands } from '../../src/cli/commands.ts'
import { machineIdentity, workloadMark } from '../../src/core/index.ts'
import { workloadRole } from '../../src/workload/server/index.ts'

const page = await readFile(new URL('../../docs/features/workload.md', import.meta.url), 'utf8')
const section = (title: string): string =>
  page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? ''
const optionsOf = (name: string) =>
  Object.keys(commands.find(({ command }) => command === `sallyport ${name}`)?.options ?? {})

describe('the page of workload run', () => {
  test.each([
    '60 seconds',
    'What the process finds',
    'The path that clients know',
    'Endpoint of a Service',
    'The end',
    'The identity of a machine',
    'Threats',
    'Compared with',
  ])('has something to say on: %s', (title) => {
    expect(section(title).length).toBeGreaterThan(300)
  })

  test('names flags that exist', () => {
    const ours = ['workload run', 'user create', 'join', 'up'].flatMap(optionsOf)
    const kubectl = ['tcp', 'clusterrole', 'user', 'namespace']
    const known = new Set([...ours, ...ours.map((name) => `no-${name}`), ...kubectl])
    const named = [...page.matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(15)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })

  test('names every option of the command that changes what the process or the cluster sees', () => {
    const plain = ['label', 'name', 'context', 'log-level', 'output']
    const options = optionsOf('workload run').filter((name) => !plain.includes(name))
    const isNamed = (name: string) => page.includes(`--${name}`) || page.includes(`--no-${name}`)
    expect(options.filter((name) => !isNamed(name))).toEqual([])
  })

  test('names the identity, the mark and the role as they are', () => {
    const { userPrefix, group, loopbackGroup } = machineIdentity
    for (const name of [userPrefix, group, loopbackGroup, workloadMark, workloadRole.metadata.name])
      expect(page).toContain(name)
  })
})
