import type { Secret } from './secret.ts'

/** What an option's text is read as. `duration` becomes milliseconds, `bytes` a number. */
export type OptionType =
  | 'string'
  | 'integer'
  | 'boolean'
  | 'duration'
  | 'bytes'
  | 'path'
  | 'address'
  | 'cidr'
  | 'choice'

interface OptionCommon {
  /** One sentence for help and reference, without a full stop. */
  readonly describe: string
  /** Heading under which help and reference show it. */
  readonly group: string
  /** What stands for the value in help, for example `FILE`. */
  readonly placeholder?: string
  /** One letter, for `-o` beside `--output`. */
  readonly short?: string
  /** The environment variable; `SALLYPORT_` and the name in capitals unless given. */
  readonly env?: string
  /** What help says of a default that is only found out at the start. */
  readonly defaultText?: string
  /** Says what is wrong with a value, as in `must be ...`, or nothing. */
  readonly check?: (value: string) => string | undefined
  /** A credential: read into a `Secret`, shown nowhere. Offer a file or stdin beside it. */
  readonly secret?: boolean
  readonly required?: boolean
}

interface OptionOf<Type extends OptionType, Value> extends OptionCommon {
  readonly type: Type
  readonly default?: Value
  readonly repeatable?: false
}

interface ListOf<Type extends OptionType, Value> extends OptionCommon {
  readonly type: Type
  /** May be given several times, or once with commas. */
  readonly repeatable: true
  readonly default?: readonly Value[]
}

type Either<Type extends OptionType, Value> = OptionOf<Type, Value> | ListOf<Type, Value>

/** The one declaration of an option: flag, environment, file and reference all come from it. */
export type OptionDeclaration =
  | Either<'string' | 'path' | 'address' | 'cidr', string>
  | OptionOf<'boolean', boolean>
  | (Either<'integer' | 'duration' | 'bytes', number> & {
      readonly min?: number
      readonly max?: number
    })
  | (Either<'choice', string> & { readonly choices: readonly string[] })

/** Options by their names, which are those of the flags. */
export type OptionTable = Readonly<Record<string, OptionDeclaration>>

type Scalar<Declaration> = Declaration extends { readonly secret: true }
  ? Secret
  : Plain<Declaration>

type Plain<Declaration> = Declaration extends { readonly choices: readonly (infer Choice)[] }
  ? Choice
  : Declaration extends { readonly type: 'boolean' }
    ? boolean
    : Declaration extends { readonly type: 'integer' | 'duration' | 'bytes' }
      ? number
      : string

type ValueOf<Declaration> = Declaration extends { readonly repeatable: true }
  ? readonly Scalar<Declaration>[]
  : Declaration extends { readonly default: unknown } | { readonly required: true }
    ? Scalar<Declaration>
    : Scalar<Declaration> | undefined

type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

/** The values that a table's options have once they are read: `secure-port` is `securePort`. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table & string as CamelCase<Name>]: ValueOf<Table[Name]>
}

/** Keeps the literal types of a table, from which the types of its values follow. */
export const defineOptions = <const Table extends OptionTable>(table: Table): Table => table

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds of a duration as Go and Kubernetes write it, for example `1m30s`; `undefined` if it is none. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  // Each text can be read in one way only: anybody can send one, and trying many ways takes time.
  if (!/^-?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (unitMs[unit ?? ''] ?? Number.NaN)
  }
  return text.startsWith('-') ? -total : total
}
