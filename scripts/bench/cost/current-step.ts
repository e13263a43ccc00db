import { type Frame, type Step, stepOf } from './steps.ts';

const DEPTH = 60;

const framesOf = (_: Error, sites: NodeJS.CallSite[]): Frame[] =>
  sites.map((site) => ({ name: site.getFunctionName() ?? '', url: site.getFileName() ?? '' }));

/** The step that runs now, by the stack of the caller, asynchronous callers included. */
export function currentStep(): Step {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.prepareStackTrace = framesOf;
  Error.stackTraceLimit = DEPTH;
  try {
    const { stack }: { stack?: unknown } = captured();
    return stepOf(Array.isArray(stack) ? stack : []);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    if (prepareStackTrace === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
    else Error.prepareStackTrace = prepareStackTrace;
  }
}

function captured(): object {
  const holder = {};
  Error.captureStackTrace(holder, currentStep);
  return holder;
}
