import { describe, expect, test } from 'vitest'
import { parseOptions } from '../../cli/options/index.ts'
import { parseDuration, WrongUsage } from '../../core/index.ts'
import { serverOptions } from './options.ts'
import { problemsOfOptions } from './validate.ts'

const shape = { command: 'sallyport serve', summary: '', options: serverOptions, examples: [] }
const parse = async (...argv: string[]) => {
  const parsed = await parseOptions(shape, { argv, env: {}, readFile: () => Promise.reject() })
  const [problem] = problemsOfOptions(parsed.values)
  if (problem !== undefined) throw new WrongUsage(problem)
  return parsed
}

test('without any flag the values are those of kube-apiserver where it has one', async () => {
  const { values } = await parse()
  expect(values).toMatchObject({
    securePort: 6443,
    anonymousAuth: true,
    maxRequestsInflight: 400,
    maxMutatingRequestsInflight: 200,
    maxRequestBodyBytes: 3_145_728,
    requestTimeout: 60_000,
    minRequestTimeout: 1_800,
    eventTtl: 3_600_000,
    serviceClusterIpRange: ['10.96.0.0/12'],
    requestheaderUsernameHeaders: ['X-Remote-User'],
    tlsSan: [],
  })
})

test('[SEC-R105] pages run on the origin of the API in kube-system only, unless the operator says otherwise', async () => {
  const namespaces = async (...argv: string[]) =>
    (await parse(...argv)).values.addonSameOriginNamespace
  expect(await namespaces()).toEqual(['kube-system'])
  expect(await namespaces('--addon-same-origin-namespace', 'a,b')).toEqual(['a', 'b'])
  // No namespace has the empty name.
  expect(await namespaces('--addon-same-origin-namespace=')).toEqual([''])
  expect((await parse()).values).toMatchObject({ allowedOrigin: [], addonAllowedOrigin: [] })
})

describe('what cannot work is refused before the start', () => {
  test.each([
    ['--secure-port must be from 0 to 65535', ['--secure-port', '70000']],
    ['--advertise-address must not be a wildcard address', ['--advertise-address', '0.0.0.0']],
    ['--tls-san must be a host name or an IP', ['--tls-san', 'a b']],
    [
      '--requestheader-group-headers must be a header name',
      ['--requestheader-group-headers', 'x y'],
    ],
    ...[
      'null',
      '*',
      'front.example',
      'https://Front.example',
      'https://a.example:443',
      'https://a.example/',
    ].flatMap((origin): [string, string[]][] => [
      ['--allowed-origin must be an origin', ['--allowed-origin', origin]],
      ['--addon-allowed-origin must be an origin', ['--addon-allowed-origin', origin]],
    ]),
    ['must be the name of a namespace', ['--addon-same-origin-namespace', 'Kube_System']],
    ['must be given together', ['--tls-cert-file', 'x']],
    ['must be given together', ['--tls-private-key-file', 'x']],
    ['needs --requestheader-client-ca-file', ['--requestheader-allowed-names', 'front']],
    ['one of each IP family', ['--service-cluster-ip-range', '10.0.0.0/16,10.1.0.0/16']],
  ])('%s', async (said, argv) => {
    await expect(parse(...argv)).rejects.toThrow(said)
  })

  test('ranges of both families are fine', async () => {
    const { values } = await parse('--service-cluster-ip-range', '10.0.0.0/16,fd00::/108')
    expect(values.serviceClusterIpRange).toHaveLength(2)
  })
})

test.each(Object.entries(serverOptions))(
  '--%s is described without a full stop',
  (_name, option) => {
    expect(option.describe).toMatch(/[^.]$/)
  },
)

test.each([
  ['0', 0],
  ['1s', 1_000],
  ['1m0s', 60_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1_500],
  ['250ms', 250],
  ['10us', 0.01],
  ['-5s', -5_000],
  ['', undefined],
  ['5', undefined],
  ['s', undefined],
  ['1d', undefined],
  ['1s ', undefined],
  ['.s', undefined],
])('the duration %j is %s milliseconds', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})
