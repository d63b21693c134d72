import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the stand-in plugins are. */
export const standIns = fileURLToPath(new URL('../../support/exec-plugins/', import.meta.url))
/** Every version that kubectl knows begins with this. */
export const group = 'client.authentication.k8s.io'

/** What a case may need to know of the place where it runs. */
export interface Place {
  /** The directory of the kubeconfig. */
  readonly directory: string
  /** PEM files of the authority that the server believes, and of a client certificate named `file-user`. */
  readonly caCert: string
  readonly caKey: string
  readonly cert: string
  readonly key: string
}

/** One question to both clients: a kubeconfig, a plugin and what surrounds them. */
export interface ContestCase {
  readonly name: string
  readonly user: object | ((place: Place) => object)
  /** Fields of the cluster beside its address and authority. */
  readonly cluster?: object
  /** Files of the kubeconfig's directory: text and mode. */
  readonly files?: Readonly<Record<string, readonly [text: string, mode: number]>>
  /** Variables of the client. */
  readonly env?: (place: Place) => Readonly<Record<string, string>>
  /** Changes the text of the kubeconfig, for what JSON cannot say. */
  readonly text?: (kubeconfig: string) => string
  /** What is typed at a terminal; none if absent. */
  readonly typed?: string
  /** How long a client may take before it counts as waiting for ever. */
  readonly patienceMs?: number
  /** Takes long: one kubectl is enough. */
  readonly heavy?: true
  /** Four requests instead of one. */
  readonly several?: true
  readonly refuses?: (authorization: string) => boolean
  readonly plainHttp?: true
  /** The policy fields of a kuberc, which kubectl has since 1.35. */
  readonly policy?: (place: Place) => object
  /** Rules for our plugins. */
  readonly rules?: object
}

/** A user with an exec section that runs a stand-in. */
export function execUser(
  standIn: string,
  env: Readonly<Record<string, string>> = {},
  rest: object = {},
): { exec: object } {
  return {
    exec: {
      apiVersion: `${group}/v1`,
      command: join(standIns, standIn),
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
      interactiveMode: 'Never',
      ...rest,
    },
  }
}

/** A user whose plugin prints a text. */
export const printing = (output: string, rest: object = {}): { exec: object } =>
  execUser('prints', { OUTPUT: output }, rest)

/** An ExecCredential in version v1 with this status. */
export const credential = (status: unknown): string =>
  JSON.stringify({ kind: 'ExecCredential', apiVersion: `${group}/v1`, status })
