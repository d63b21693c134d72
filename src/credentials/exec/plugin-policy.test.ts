import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { inspectPlugin } from './inspect-plugin.ts'
import type { PluginPolicy } from './plugin.ts'
import { execConfig, failureOf, labHost, writeProgram } from './plugin-lab.suite.ts'
import { readPluginPolicy } from './plugin-policy.ts'
import { runPlugin } from './run-plugin.ts'

// The tables name paths of it, so it is there before the first test.
const directory = mkdtempSync(join(tmpdir(), 'sallyport-policy-'))
const marker = join(directory, 'ran')
const program = writeProgram(directory, 'plugin', `#!/bin/sh\ntouch ${marker}\n`)
const env = { PATH: `${directory}:/usr/bin:/bin` }
afterAll(() => rmSync(directory, { recursive: true }))

const allow = (...commands: string[]): PluginPolicy => ({
  policy: 'Allowlist',
  allowlist: commands.map((command) => ({ command })),
})

describe('who may run', () => {
  test.each<[string, PluginPolicy | undefined, string, boolean]>([
    ['no policy', undefined, 'plugin', true],
    ['AllowAll', { policy: 'AllowAll' }, 'plugin', true],
    ['DenyAll', { policy: 'DenyAll' }, 'plugin', false],
    ['DenyAll, not even installed', { policy: 'DenyAll' }, 'missing', false],
    ['the command as it stands', allow('plugin'), 'plugin', true],
    ['a bare name for the path it stands for', allow('plugin'), program, true],
    ['a path for the bare name that leads to it', allow(program), 'plugin', true],
    ['a path of another directory', allow('/usr/bin/plugin'), 'plugin', false],
    ['another name', allow('other'), 'plugin', false],
    ['one of several', allow('a', 'b', 'plugin'), 'plugin', true],
    ['a command that cannot be resolved', allow('plugin'), join(directory, 'missing'), false],
    ['an entry that cannot be resolved', allow('/nowhere/plugin'), 'plugin', false],
  ])('%s [CRED-E14, CRED-S1]', async (_name, policy, command, allowed) => {
    const host = labHost({ env, ...(policy && { policy }) })
    const plan = inspectPlugin({ exec: execConfig(command) }, host)
    const outcome = await plan.catch(() => failureOf(plan))
    expect(outcome).toMatchObject(
      allowed ? { resolvedPath: program, interactive: false } : { code: 'POLICY_DENIED', command },
    )
  })
})

describe('a policy that is not sound allows nothing', () => {
  test.each<[string, unknown]>([
    ['Allowlist without a list', { policy: 'Allowlist' }],
    ['an empty list', allow()],
    ['an empty entry', allow('plugin', '')],
    ['a path that is not clean', allow('plugin', '/usr/bin/../bin/plugin')],
    ['a list beside AllowAll', { ...allow('plugin'), policy: 'AllowAll' }],
    ['a list beside DenyAll', { ...allow('plugin'), policy: 'DenyAll' }],
    ['an unknown policy', { policy: 'allowall' }],
  ])('%s [CRED-E15]', async (_name, policy) => {
    const host = labHost({ env, policy: policy as PluginPolicy })
    const error = await failureOf(inspectPlugin({ exec: execConfig('plugin') }, host))
    expect(error.code).toBe('CONFIG_INVALID')
  })
})

test('a denied plugin is not started [CRED-E14]', async () => {
  const host = labHost({ env, policy: { policy: 'DenyAll' } })
  await failureOf(runPlugin({ exec: execConfig('plugin') }, host))
  expect(existsSync(marker)).toBe(false)
  await failureOf(runPlugin({ exec: execConfig('plugin') }, labHost({ env })))
  expect(existsSync(marker)).toBe(true)
})

describe('the fields of a kuberc file', () => {
  test.each([
    [{}, undefined],
    [{ credentialPluginPolicy: '' }, undefined],
    [{ credentialPluginPolicy: 'DenyAll' }, { policy: 'DenyAll' }],
    [
      { credentialPluginPolicy: 'Allowlist', credentialPluginAllowlist: [{ command: 'a' }] },
      allow('a'),
    ],
    [
      { credentialPluginPolicy: 'Allowlist', credentialPluginAllowlist: [{ name: 'a' }] },
      allow('a'),
    ],
  ])('%j is read [CRED-E15]', (preference, policy) => {
    expect(readPluginPolicy(preference)).toEqual(policy)
  })

  test.each([
    { credentialPluginPolicy: 'Maybe' },
    { credentialPluginPolicy: 7 },
    { credentialPluginAllowlist: [{ command: 'a' }] },
    { credentialPluginPolicy: 'Allowlist', credentialPluginAllowlist: 'a' },
    { credentialPluginPolicy: 'Allowlist', credentialPluginAllowlist: ['a'] },
    { credentialPluginPolicy: 'Allowlist', credentialPluginAllowlist: [{ command: 7 }] },
  ])('%j is refused [CRED-E15]', (preference) => {
    expect(() => readPluginPolicy(preference)).toThrow('policy for exec plugins is not valid')
  })
})
