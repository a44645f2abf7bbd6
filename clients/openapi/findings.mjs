// Reads what a linter found, as JSON, from standard input: `node findings.mjs spectral|redocly ALLOWED`. Shows all of it, and fails
// if there is an error, or more warnings than are allowed; whatever is less than a warning, or was set aside, counts as one.
import { readFileSync } from 'node:fs';

const [linter, allowed] = process.argv.slice(2);
const report = JSON.parse(readFileSync(0, 'utf8'));

const read = {
    spectral: () =>
        report.map(({ code, severity, path, message }) => ({
            rule: code,
            error: severity === 0,
            at: path.join('.'),
            message,
        })),
    redocly: () => {
        const { errors, warnings, ignored } = report.totals;
        const found = report.problems.map(({ ruleId, severity, location, message }) => ({
            rule: ruleId,
            error: severity === 'error',
            at: location[0]?.pointer ?? '',
            message,
        }));
        // Nothing is left out of the list.
        const listed = found.filter(({ error }) => error).length;
        if (listed !== errors || found.length < errors + warnings) {
            throw new Error(`${found.length} of ${errors + warnings} problems are listed`);
        }
        const aside = { rule: 'ignored', error: false, at: '', message: 'set aside in a file' };
        return found.concat(Array(ignored).fill(aside));
    },
};

const found = read[linter]();
const errors = found.filter(({ error }) => error).length;
const warnings = found.length - errors;
for (const { rule, error, at, message } of found) {
    console.log(`${error ? 'error' : 'warning'}  ${linter} ${rule}  ${at}  ${message}`);
}
if (errors > 0 || warnings > Number(allowed)) {
    console.log(`${linter}: ${errors} errors, of which none is allowed, and ${warnings} warnings, of which ${allowed} are`);
    process.exit(1);
}
