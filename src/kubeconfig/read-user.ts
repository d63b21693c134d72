import { Secret } from '../core/index.ts'
import { type FieldReader, present } from './field-reader.ts'
import type { AuthProviderConfig, ExecConfig, Impersonation, KubeconfigUser } from './kubeconfig.ts'
import { readExtensions } from './read-extensions.ts'

/** Reads a `user` entry. */
export function readUser(reader: FieldReader): KubeconfigUser {
  const keyData = reader.base64Text('client-key-data')
  return {
    ...present({
      clientCertificate: reader.filled('client-certificate'),
      clientCertificateData: reader.base64Text('client-certificate-data'),
      clientKey: reader.filled('client-key'),
      clientKeyData: keyData === undefined ? undefined : new Secret(keyData),
      token: reader.secret('token'),
      tokenFile: reader.filled('tokenFile'),
      username: reader.filled('username'),
      password: reader.secret('password'),
      impersonate: readImpersonation(reader),
      authProvider: readAuthProvider(reader.map('auth-provider')),
      exec: readExec(reader.map('exec')),
      extensions: readExtensions(reader),
    }),
    ...reader.rest(),
  }
}

function readImpersonation(reader: FieldReader): Impersonation | undefined {
  const impersonation = present({
    username: reader.filled('as'),
    uid: reader.filled('as-uid'),
    groups: reader.strings('as-groups'),
    extra: readExtra(reader.map('as-user-extra')),
  })
  return Object.keys(impersonation).length > 0 ? impersonation : undefined
}

function readExtra(
  reader: FieldReader | undefined,
): Readonly<Record<string, readonly string[]>> | undefined {
  if (!reader) return undefined
  return Object.fromEntries(reader.names().map((name) => [name, reader.strings(name) ?? []]))
}

function readAuthProvider(reader: FieldReader | undefined): AuthProviderConfig | undefined {
  if (!reader) return undefined
  const config = reader.map('config')
  const secrets = config
    ?.names()
    .map((name) => [name, new Secret(config.string(name) ?? '')] as const)
  return {
    name: reader.string('name') ?? '',
    ...present({ config: secrets && Object.fromEntries(secrets) }),
    ...reader.rest(),
  }
}

function readExec(reader: FieldReader | undefined): ExecConfig | undefined {
  if (!reader) return undefined
  const env = reader.list('env').map((item) => ({
    name: item.string('name') ?? '',
    value: new Secret(item.string('value') ?? ''),
  }))
  return {
    command: reader.string('command') ?? '',
    apiVersion: reader.string('apiVersion') ?? '',
    ...present({
      args: reader.strings('args'),
      env: env.length > 0 ? env : undefined,
      installHint: reader.filled('installHint'),
      provideClusterInfo: reader.boolean('provideClusterInfo'),
      interactiveMode: reader.filled('interactiveMode'),
    }),
    ...reader.rest(),
  }
}
