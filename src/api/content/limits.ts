import { Work, type WorkLimits } from '../../core/index.ts'

/**
 * What is decoded and patched on the event loop: a few milliseconds on a slow machine. Nearly all
 * requests of stock clients are smaller. Everything above goes to a worker thread.
 */
export const inlineWorkLimits: WorkLimits = {
  tokens: 2_000,
  yamlTokens: 200,
  yamlBytes: 2 * 1024,
  nodes: 2_000,
  operations: 2_000,
}

/**
 * What is decoded and patched at all. The largest objects of stock controllers are EndpointSlices of
 * 1,000 endpoints, some 18,000 tokens; YAML is sent by hand, kubectl converts it to JSON.
 */
export const maxWorkLimits: WorkLimits = {
  tokens: 25_000,
  yamlTokens: 20_000,
  yamlBytes: 256 * 1024,
  nodes: 25_000,
  operations: 200_000,
}

/** Nesting of a JSON body. */
export const maxJsonDepth = 1_000
/** Nesting of a YAML body: more than any kind has; the library needs a stack frame per level. */
export const maxYamlDepth = 100
/** Few lines with many aliases could become gigabytes. */
export const maxYamlAliases = 20

/** A counter for callers that only want the largest limits. */
export const maxWork = (): Work => new Work(maxWorkLimits)
