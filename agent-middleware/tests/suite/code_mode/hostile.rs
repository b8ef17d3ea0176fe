//! Malicious programs: each fails within the limits, and the process survives.

use std::time::{Duration, Instant};

use agent_middleware::CodeMode;

use super::world::result_with;

/// Runs a program that must fail, and returns the text that the model receives.
async fn told(code: &str) -> String {
    told_by(code, CodeMode::new()).await
}

async fn told_by(code: &str, mode: CodeMode) -> String {
    let begun = Instant::now();
    let mode = mode.time(Duration::from_millis(300));
    let (text, done) = result_with(code, mode).await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{code} took {:?}", begun.elapsed());
    assert!(done.is_empty() && text.len() <= 20_100, "{code}: {} bytes", text.len());
    text
}

#[tokio::test]
async fn endless_loops_end_at_the_limit_of_time() {
    for code in [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
        "sum(range(10**12))",
        "while True: print('x' * 1000)",
        "[0 for a in range(10**6) for b in range(10**6)]",
        "sorted(range(10**8))",
        "import re\nre.match('(a+)+$', 'a' * 40 + 'b')\nwhile True: pass",
        "import itertools\nfor n in itertools.count(): n",
        "async def f():\n    await f()\nwhile True:\n    try:\n        await f()\n    except RecursionError:\n        pass",
    ] {
        let text = told(code).await;
        assert!(text.contains("time limit exceeded") || text.contains("Error"), "{code}: {text}");
    }
}

#[tokio::test]
async fn deep_recursion_is_an_error() {
    let nested = format!("x = {}1{}", "[".repeat(5000), "]".repeat(5000));
    let chain = format!("x = 1\nx{}", ".real".repeat(5000));
    let adds = format!("x = {}1", "1 + ".repeat(20_000));
    let minus = format!("x = {}1", "-".repeat(50_000));
    let ifs: String = (0..400).map(|n| format!("{}if True:\n", " ".repeat(n))).collect();
    let ifs = format!("{ifs}{}pass", " ".repeat(400));
    let lambdas = format!("x = {}1", "lambda: ".repeat(10_000));
    let strings = format!("x = {}{}", "f'{".repeat(300), "}'".repeat(300));
    for code in [
        "def f(): return f()\nf()",
        "def f(n): return g(n)\ndef g(n): return f(n)\nf(1)",
        "class A:\n    def __repr__(self): return repr(self)\nrepr(A())",
        "class A:\n    def __eq__(self, other): return self == other\nA() == A()",
        "f = lambda f: f(f)\nf(f)",
        "sorted([2, 1], key=lambda x: sorted([2, 1], key=lambda y: f()))",
        &nested,
        &chain,
        &minus,
        &ifs,
        &lambdas,
        &strings,
    ] {
        for mode in [CodeMode::new(), CodeMode::new().recursion(usize::MAX)] {
            let text = told_by(code, mode).await;
            assert!(text.contains("Error"), "{}: {text}", &code[..code.len().min(80)]);
        }
    }
    told(&adds).await;
}

#[tokio::test]
async fn a_program_that_is_as_long_and_as_deep_as_may_be_does_no_harm_and_a_longer_one_is_refused() {
    for part in [".a", "()", "+1", "[0]", "if 1 else 1 "] {
        let code = format!("print{}", part.repeat(((128 << 10) - 5) / part.len()));
        let text = told(&code).await;
        assert!(text.contains("Error") && !text.contains("131072"), "{part}: {}", &text[..text.len().min(300)]);
        let text = told(&format!("{code}{part}")).await;
        assert!(text.contains(" bytes, and 131072 are the most"), "{part}: {text}");
    }
}

#[tokio::test]
async fn values_that_are_nested_deeply_do_no_harm() {
    for code in [
        "x = []\nfor n in range(100000): x = [x]\nprint(1)\nx",
        "x = []\nfor n in range(100000): x = [x]\nrepr(x)",
        "x = []\nfor n in range(100000): x = [x]\nx == x.copy()",
        "x = []\nfor n in range(100000): x = [x]\nsay(x)",
        "x = {}\nfor n in range(100000): x = {'a': x}\nsay(x)",
        "x = ()\nfor n in range(100000): x = (x,)\nhash(x)",
        "x = []\nfor n in range(100000): x = [x]\nimport json\njson.dumps(x)",
        "import json\njson.loads('[' * 100000)",
        "x = []\nx.append(x)\nsay(x)",
        "x = []\nx.append(x)\nx",
        "x = {}\nx['x'] = x\nimport json\njson.dumps(x)",
    ] {
        told(code).await;
        told_by(code, CodeMode::new().recursion(usize::MAX)).await;
    }
}

#[tokio::test]
async fn large_values_are_refused_before_they_are_made() {
    for code in [
        "10**10**8",
        "x = 10**10**10",
        "1 << 10**12",
        "'x' * 10**10",
        "b'x' * 10**10",
        "[0] * 10**10",
        "(0,) * 10**10",
        "'x'.ljust(10**10)",
        "'{:>10000000000}'.format(1)",
        "f'{1:>10000000000}'",
        "'%10000000000d' % 1",
        "bytes(10**10)",
        "x = 'x' * 10**7\nx.replace('x', 'y' * 1000)",
        "','.join(['x' * 10**6] * 10**5)",
        "import math\nmath.factorial(10**7)",
        "int('9' * 10**7)",
        "x = 2\nwhile True: x = x * x",
        "pow(3, 10**9)",
        "list(range(10**10))",
        "set(range(10**10))",
        "x = 'x'\nwhile True: x += x",
        "x = [1]\nwhile True: x += x",
        "x = [1]\nwhile True: x.extend(x)",
        "import itertools\nlist(itertools.repeat('x', 10**10))",
        "import collections\ncollections.deque([0]) * 10**10",
        "x = 'x' * 60000000\ny = []\nwhile True: y.append(x + 'y')",
        "y = []\nwhile True: y.append('x' * 1000000 + str(len(y)))",
        "y = {}\nwhile True: y[len(y)] = [len(y)]",
        "def f():\n    y = ['x' * 1000 + str(n) for n in range(1000)]\n    return f() + y\nf()",
    ] {
        let text = told(code).await;
        assert!(text.contains("Error"), "{code}: {text}");
    }
}

#[tokio::test]
async fn nothing_of_the_system_is_reached() {
    for code in [
        "open('/etc/passwd').read()",
        "import os\nos.environ['PATH']",
        "import os\nos.getenv('PATH')",
        "import os\nos.system('true')",
        "import os\nos.listdir('/')",
        "import subprocess",
        "import socket",
        "import ctypes",
        "import importlib",
        "__import__('os').system('true')",
        "eval('1')",
        "exec('x = 1')",
        "compile('1', '', 'eval')",
        "from pathlib import Path\nPath('/etc/passwd').read_text()",
        "from pathlib import Path\nPath('x').write_text('x')",
        "().__class__.__bases__[0].__subclasses__()",
        "(lambda: 0).__globals__",
        "(lambda: 0).__code__",
        "say.__globals__",
        "say.__self__.__dict__['x']",
        "''.__class__.__mro__[1].__subclasses__()",
        "getattr(say, '__call__').__func__",
        "'{0.__class__.__init__.__globals__}'.format(print)",
        "import sys\nsys.modules['os'].system('true')",
        "import sys\nsys._getframe()",
        "globals()['__builtins__'].open",
        "input()",
        "import datetime\ndatetime.datetime.now()",
        "breakpoint()",
        "del print\nprint = open\nprint('/etc/passwd')",
    ] {
        let text = told(code).await;
        assert!(text.contains("Error"), "{code}: {text}");
    }
}

#[tokio::test]
async fn an_operation_that_nothing_can_interrupt_does_not_hold_up_the_run() {
    let text = told("x = 3 ** 10**7\nx = x * x").await;
    assert!(text.contains("time limit exceeded"), "{text}");
}

#[tokio::test]
async fn a_long_traceback_has_its_ends_and_the_error() {
    let text = told("def f(n): return g(n)\ndef g(n): return f(n)\nf(1)").await;
    assert!(text.starts_with("Traceback") && text.contains(" frames left out]"), "{text}");
    assert!(text.ends_with("RecursionError: maximum recursion depth exceeded"), "{text}");
}
