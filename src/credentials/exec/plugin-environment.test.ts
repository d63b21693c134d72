import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { chainVariable, pluginEnvironment, refuseRecursion } from './plugin-environment.ts'
import { execConfig, labHost } from './plugin-lab.suite.ts'

describe('the variables of a plugin', () => {
  test('are the host’s, then the kubeconfig’s, then ours [CRED-R5]', () => {
    const exec = execConfig('plugin', { env: { B: 'config', KUBERNETES_EXEC_INFO: 'config' } })
    const env = pluginEnvironment(
      exec,
      labHost({ env: { A: 'host', B: 'host', C: undefined } }),
      'ours',
    )
    expect(env).toEqual({
      A: 'host',
      B: 'config',
      KUBERNETES_EXEC_INFO: 'ours',
      [chainVariable]: expect.any(String),
    })
  })

  test('of a name that is given twice, the last value counts [CRED-E9]', () => {
    const env = ['1', '2'].map((value) => ({ name: 'A', value: new Secret(value) }))
    const exec = { ...execConfig('plugin'), env }
    expect(pluginEnvironment(exec, labHost({ env: {} }), '')['A']).toBe('2')
  })

  test.each([[['A', 'B']], [(name: string) => name !== 'PATH']])(
    'those of the host can be left out by list or rule [CRED-S8]',
    (dropEnv) => {
      const host = labHost({ env: { A: '1', B: '2', PATH: '/bin' }, dropEnv })
      const env = pluginEnvironment(execConfig('plugin', { env: { B: 'kept' } }), host, 'info')
      expect(env).toMatchObject({ B: 'kept', PATH: '/bin', KUBERNETES_EXEC_INFO: 'info' })
      expect(env).not.toHaveProperty('A')
    },
  )

  test('Windows sees one variable where others see two', () => {
    const host = labHost({ platform: 'win32', env: { Path: 'host' } })
    const env = pluginEnvironment(execConfig('plugin', { env: { PATH: 'config' } }), host, '')
    expect(Object.entries(env).filter(([name]) => /path/i.test(name))).toEqual([['PATH', 'config']])
  })

  test('the later layer wins for any names and values [CRED-R5, CRED-I10]', () => {
    const name = fc.constantFrom('A', 'B', '__proto__', 'constructor', 'KUBERNETES_EXEC_INFO')
    const layer = fc.array(fc.tuple(name, fc.string()))
    fc.assert(
      fc.property(layer, layer, (host, config) => {
        const exec = {
          ...execConfig('plugin'),
          env: config.map(([key, value]) => ({ name: key, value: new Secret(value) })),
        }
        const env = pluginEnvironment(exec, labHost({ env: Object.fromEntries(host) }), 'info')
        const expected = new Map<string, string>([...host, ...config])
        expected.set('KUBERNETES_EXEC_INFO', 'info')
        expected.set(chainVariable, env[chainVariable] ?? '')
        expect(new Map(Object.entries(env))).toEqual(expected)
      }),
    )
  })
})

describe('a plugin under itself', () => {
  const below = (exec = execConfig('plugin'), above = {}) =>
    labHost({ env: pluginEnvironment(exec, labHost({ env: above }), '') })

  test('is refused, at any depth [CRED-S18]', () => {
    const exec = execConfig('plugin')
    expect(() => refuseRecursion(exec, labHost({ env: {} }))).not.toThrow()
    expect(() => refuseRecursion(exec, below())).toThrow('needs a credential of itself')
    const deeper = below(execConfig('other'), below().env)
    expect(() => refuseRecursion(exec, deeper)).toThrow('needs a credential of itself')
  })

  test('another plugin under it is fine, but not without end [CRED-S18]', () => {
    expect(() => refuseRecursion(execConfig('other'), below())).not.toThrow()
    expect(() => refuseRecursion(execConfig('plugin', { args: ['a'] }), below())).not.toThrow()
    let host = labHost({ env: {} })
    for (let depth = 0; depth < 8; depth++) host = below(execConfig(`plugin-${depth}`), host.env)
    expect(() => refuseRecursion(execConfig('one-more'), host)).toThrow('of itself')
  })
})
